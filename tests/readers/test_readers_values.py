"""How the numbers and masks of a file become those of a light field."""

import lightfield_files as files
import numpy as np
import pytest
from PIL import Image

from oaccdepth import readers
from oaccdepth.errors import InvalidLightField
from oaccdepth.options import ReadOptions


@pytest.fixture(scope="module")
def rendered():
    return files.render()


@pytest.mark.parametrize(
    ("stored", "dtype", "expected"),
    [
        (np.uint16, np.uint16, lambda views: views.astype(np.uint16) * 256),
        (np.int64, np.uint8, lambda views: views),
        (np.float64, np.float32, lambda views: np.float32(views) / np.float32(255)),
        (np.float16, np.float32, lambda views: np.float32(views) / np.float32(255)),
        (">u2", np.uint16, lambda views: views.astype(np.uint16) * 256),
        (bool, np.uint8, lambda views: np.where(views, 255, 0)),
    ],
)
def test_number_types(tmp_path, rendered, stored, dtype, expected):
    views = rendered[0]
    np.save(tmp_path / "a.npy", views.astype(stored))
    found = readers.read(tmp_path / "a.npy", ReadOptions(check_orientation=False)).views
    assert found.dtype == dtype
    assert np.allclose(found, expected(views), atol=1e-6)


def test_a_16_bit_view_among_8_bit_ones_is_scaled(tmp_path, rendered):
    views = rendered[0]
    files.pairs(tmp_path / "a", views, "view_{}_{}.png")
    files.write_picture(tmp_path / "a" / "view_1_2.png", views[1, 2].astype(np.uint16) * 257)
    found = readers.read(tmp_path / "a")
    assert np.array_equal(found.views, views)
    assert found.notes[0] == "Scaled to the bit depth of the centre view: view_1_2.png."
    files.pairs(tmp_path / "b", views.astype(np.uint16) * 257, "view_{}_{}.png")
    files.write_picture(tmp_path / "b" / "view_1_2.png", views[1, 2])
    assert np.array_equal(readers.read(tmp_path / "b").views, views.astype(np.uint16) * 257)


@pytest.mark.parametrize("white", [255, 1023, 4095, 16383])
def test_16_bit_files_may_hold_fewer_bits(tmp_path, rendered, white):
    """Mixed with 8-bit views, one or the other way, all must be equally bright."""
    views = rendered[0]
    fewer = np.rint(views * (white / 255)).astype(np.uint16)
    files.pairs(tmp_path / "a", views, "view_{}_{}.png")
    files.write_picture(tmp_path / "a" / "view_1_2.png", fewer[1, 2])
    assert np.array_equal(readers.read(tmp_path / "a").views, views)
    files.pairs(tmp_path / "b", fewer, "view_{}_{}.png")
    files.write_picture(tmp_path / "b" / "view_1_2.png", views[1, 2])
    found = readers.read(tmp_path / "b").views
    assert np.abs(found[1, 2] / found[1, 1].mean() - views[1, 2] / views[1, 1].mean()).max() < 0.02


def test_a_view_of_16_bits_among_those_of_12(tmp_path, rendered):
    """All are uint16; the centre view has 12 bits, so all but this one are multiplied by 16."""
    views = rendered[0].astype(np.uint16) * 16
    files.pairs(tmp_path / "a", views, "view_{}_{}.png")
    expected = readers.read(tmp_path / "a").views
    files.write_picture(tmp_path / "a" / "view_1_2.png", views[1, 2] * 16)
    found = readers.read(tmp_path / "a")
    assert np.array_equal(found.views, expected)
    assert "Scaled to the bit depth of the centre view: view_1_2.png." in found.notes
    views[1, 2] *= 16
    np.save(tmp_path / "a.npy", views)
    assert np.array_equal(readers.read(tmp_path / "a.npy").views, expected)


def test_a_view_of_16_bits_whose_scale_is_unclear(tmp_path, rendered):
    views = rendered[0].astype(np.uint16) * 16
    files.pairs(tmp_path / "a", views, "view_{}_{}.png")
    files.write_picture(tmp_path / "a" / "view_1_2.png", views[1, 2] * 2)
    with pytest.raises(InvalidLightField) as caught:
        readers.read(tmp_path / "a")
    assert str(caught.value) == (
        f"{tmp_path / 'a'}: view_1_2.png has values up to {2 * views[1, 2].max()}, the centre view "
        "up to 4095, and their brightness does not tell how to scale it. Export all views alike."
    )


def test_dark_16_bit_values_are_stretched(tmp_path, rendered):
    dark = (rendered[0] // 6).astype(np.uint16)
    np.save(tmp_path / "a.npy", dark)
    found = readers.read(tmp_path / "a.npy", ReadOptions(check_orientation=False))
    assert np.array_equal(found.views, dark * 1024)
    largest = dark[2, 2].max()
    assert found.notes == (f"Values up to {largest} of 65535 are very dark: multiplied by 1024.",)


@pytest.mark.parametrize("shape", [(60, 76), (5, 5, 30, 76), (5, 5, 60)])
def test_a_mask_of_another_shape_is_refused_with_the_name(tmp_path, rendered, shape):
    """Before, the message did not say which file, nor what it should be."""
    path = tmp_path / "a.npz"
    np.savez(path, views=rendered[0], valid=np.ones(shape, bool))
    with pytest.raises(InvalidLightField) as raised:
        readers.read(path)
    assert str(raised.value) == (
        f"{path}: its mask is {' x '.join(map(str, shape))}, expected one value per view (5 x 5) "
        "or per pixel of every view (5 x 5 x height x width). Correct its mask, or export it "
        "without one."
    )


def test_a_mask_that_is_false_everywhere_is_refused(tmp_path, rendered):
    for name, mask in (("a", np.zeros((5, 5), bool)), ("b", np.zeros((5, 5, 60, 76), bool))):
        np.savez(tmp_path / f"{name}.npz", views=rendered[0], valid=mask)
        with pytest.raises(InvalidLightField) as caught:
            readers.read(tmp_path / f"{name}.npz")
        assert str(caught.value) == (
            f"{tmp_path / name}.npz: no pixel of the centre view is finite, opaque "
            "and valid, so there is nothing to estimate. Correct its mask, or export it again."
        )


def test_unit_floats_stay(tmp_path, rendered):
    views = rendered[0] / 255
    views[0, 0, 0, 0] = 1.02, -0.01, np.nan
    np.save(tmp_path / "a.npy", views)
    found = readers.read(tmp_path / "a.npy", ReadOptions(check_orientation=False))
    assert found.views[0, 0, 0, 0].tolist() == [1, 0, 0]
    assert np.argwhere(~found.valid).tolist() == [[0, 0, 0, 0]]
    assert found.notes == ("1 pixel is NaN or infinite: masked out.",)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.full((3, 3, 9, 9, 3), -5), "values from -5 to -5, expected 0 to 1, 255 or 65535."),
        (
            np.full((3, 3, 9, 9, 3), 1e9),
            "values from 1e+09 to 1e+09, expected 0 to 1, 255 or 65535.",
        ),
        (np.zeros((3, 3, 9, 9, 3), complex), None),
    ],
)
def test_strange_numbers(tmp_path, values, message):
    np.save(tmp_path / "a.npy", values)
    with pytest.raises(InvalidLightField) as caught:
        readers.read(tmp_path / "a.npy")
    if message:
        assert str(caught.value) == f"{tmp_path}/a.npy: {message}"


def test_numbers_that_grow_beyond_the_centre_view(tmp_path):
    views = np.full((3, 3, 9, 9, 3), 200)
    views[0, 0] = 300
    np.save(tmp_path / "a.npy", views)
    with pytest.raises(InvalidLightField, match="has values from 200 to 300, expected 0 to 255"):
        readers.read(tmp_path / "a.npy")


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("ending", ["png", "tif"])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_depth_and_channels_of_pictures(tmp_path, rendered, dtype, ending, channels):
    views = (rendered[0].astype(np.uint16) * (257 if dtype is np.uint16 else 1)).astype(dtype)
    alpha = np.full((*views.shape[:4], 1), np.iinfo(dtype).max, dtype=dtype)
    alpha[1, 1, 3:9, 5:20] = 0
    stored = np.concatenate([views, alpha], axis=-1)[..., :channels]
    for u, v, view in files.each(stored):
        files.write_picture(tmp_path / "a" / f"{u}_{v}.{ending}", view)
    found = readers.read(tmp_path / "a")
    assert found.views.dtype == dtype
    assert np.array_equal(found.views, stored[..., :3])
    assert (found.valid is None) == (channels < 4)
    if channels == 4:
        assert np.array_equal(found.valid, alpha[..., 0] > 0)


def test_grey_with_alpha_palettes_and_bits(tmp_path):
    views, _ = files.render((3, 3), (20, 24))
    folder = tmp_path / "a"
    folder.mkdir()
    for u, v, view in files.each(views):
        picture = Image.fromarray(view).convert("L")
        picture.putalpha(Image.fromarray(np.where(view[..., 0] > 128, 255, 0).astype(np.uint8)))
        picture.save(folder / f"{u}_{v}.png")
    found = readers.read(folder, ReadOptions(check_orientation=False))
    assert found.views.shape[-1] == 1
    assert np.array_equal(found.valid, views[..., 0] > 128)
    for mode, channels in (("P", 3), ("1", 1), ("CMYK", 3)):
        for u, v, view in files.each(views):
            (folder / f"{u}_{v}.png").unlink(missing_ok=True)
            picture = Image.fromarray(view).convert(mode)
            picture.save(folder / f"{u}_{v}.{'tif' if mode == 'CMYK' else 'png'}")
        found = readers.read(folder, ReadOptions(check_orientation=False))
        assert (found.views.shape[-1], found.views.dtype) == (channels, np.uint8)


def test_an_alpha_of_zeros_says_nothing(tmp_path, rendered):
    rgba = np.concatenate([rendered[0], np.zeros_like(rendered[0][..., :1])], axis=-1)
    np.save(tmp_path / "a.npy", rgba)
    found = readers.read(tmp_path / "a.npy")
    assert found.valid is None
    assert np.array_equal(found.views, rendered[0])


def test_gamma_as_asked(tmp_path, rendered):
    files.hci(tmp_path / "town", rendered[0])
    found = readers.read(tmp_path / "town", ReadOptions(gamma=2.0))
    expected = np.rint(np.sqrt(rendered[0] / 255) * 255)
    assert np.array_equal(found.views, expected)
    assert found.notes == ("Display gamma 2 applied, as asked.",)
