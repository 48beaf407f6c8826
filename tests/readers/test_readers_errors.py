"""Bad input: one line that says what is wrong, what was expected and what to do."""

import h5py
import lightfield_files as files
import numpy as np
import pytest
import scipy.io
from lightfield_files import fails

from oaccdepth import readers
from oaccdepth.errors import InvalidLightField, InvalidOption, UnknownFormat, UnreadableFile
from oaccdepth.options import ReadOptions


def test_missing_path(tmp_path):
    path = tmp_path / "nowhere"
    fails(UnreadableFile, path, f"{path}: no such file or folder. Check the path.")
    with pytest.raises(UnreadableFile, match="no such file or folder"):
        readers.find(path)


def test_empty_folder(tmp_path):
    fails(
        UnknownFormat,
        tmp_path,
        f"{tmp_path}: is an empty folder. Expected the views of a light field.",
    )


def test_folder_without_pictures(tmp_path):
    (tmp_path / "notes.txt").write_text("no views")
    fails(
        UnknownFormat,
        tmp_path,
        f"{tmp_path}: the folder holds no light field. "
        "Expected pictures named by row and column or number; see oaccdepth formats.",
    )


def test_folder_of_light_fields(tmp_path, views):
    files.hci(tmp_path / "training" / "town", views)
    files.hci(tmp_path / "training" / "boxes", views)
    fails(
        UnknownFormat,
        tmp_path,
        f"{tmp_path}: the folder itself holds no views, but there are light fields in it: "
        "training/boxes, training/town. Give one of them, or use oaccdepth batch.",
    )


def test_grid_that_cannot_be_inferred(tmp_path, views):
    for index in range(10):
        files.write_picture(tmp_path / f"img_{index}.png", views[0, 0])
    message = (
        f"{tmp_path}: the grid cannot be inferred from 10 pictures, such as img_0.png. "
        "Pass --views UxV if they are numbered, or describe their names with --pattern REGEX."
    )
    fails(InvalidLightField, tmp_path, message)
    fails(
        InvalidLightField,
        tmp_path,
        f"{tmp_path}: 10 pictures, such as img_0.png, do not fill a grid of 3 x 3. "
        "Correct --views, or describe the names with --pattern REGEX.",
        views=(3, 3),
    )
    fails(
        InvalidLightField,
        tmp_path,
        f"{tmp_path}: --pattern (\\d+)x matches no grid of views (10 pictures, such as img_0.png).",
        pattern=r"(\d+)x",
    )
    for index in range(3, 10):
        (tmp_path / f"img_{index}.png").unlink()
    fails(InvalidLightField, tmp_path, message.replace("10 pictures", "3 pictures"))


@pytest.mark.parametrize("options", [{}, {"views": (1, 1)}, {"pattern": r"(\d+)x"}])
def test_a_single_picture_is_no_light_field(tmp_path, views, options):
    files.write_picture(tmp_path / "img_0.png", views[0, 0])
    message = (
        f"{tmp_path}: a single picture, img_0.png. "
        "Disparity needs 3 views or more of the same scene."
    )
    fails(InvalidLightField, tmp_path, message, **options)


@pytest.mark.parametrize("options", [{}, {"views": (1, 2)}])
def test_two_pictures_are_no_light_field(tmp_path, views, options):
    """--views would not help, so it is not suggested."""
    for name in ("left.png", "right.png"):
        files.write_picture(tmp_path / name, views[0, 0])
    message = (
        f"{tmp_path}: two pictures, left.png and right.png. "
        "Disparity needs 3 views or more of the same scene."
    )
    fails(InvalidLightField, tmp_path, message, **options)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (r"(", "--pattern (: not a regular expression (missing ), unterminated subpattern"),
        (r"img", "--pattern img: has 0 groups, expected two (row and column) or one (index)"),
        (r"(i)mg", "--pattern (i)mg: a group matched 'i', expected digits."),
    ],
)
def test_bad_patterns(tmp_path, views, pattern, message):
    files.numbered(tmp_path, views, "img_{}.png")
    with pytest.raises(InvalidOption) as caught:
        readers.read(tmp_path, ReadOptions(pattern=pattern))
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("ending", ["png", "jpg", "tif", "bmp", "webp"])
@pytest.mark.parametrize("part", [0.0, 0.1, 0.6, 0.97])
def test_truncated_view(tmp_path, views, ending, part, capfd):
    folder = tmp_path / "a"
    for u, v, view in files.each(np.repeat(np.repeat(views, 4, 2), 4, 3)):
        files.write_picture(folder / f"view_{u}_{v}.{ending}", view)
    path = folder / f"view_0_1.{ending}"
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * part)])
    fails(
        UnreadableFile,
        folder,
        f"{path}: damaged or not a picture. Copy or export it again.",
    )
    assert capfd.readouterr().err == ""


def test_truncated_16_bit_view(tmp_path, views, capfd):
    files.pairs(tmp_path, views.astype(np.uint16) << 8, "{}_{}.png")
    path = tmp_path / "2_2.png"
    data = bytearray(path.read_bytes())
    for damaged in (data[:-100], data[:-100] + b"x" + data[-99:], data[:40]):
        path.write_bytes(damaged)
        message = f"{path}: damaged or not a picture. Copy or export it again."
        fails(UnreadableFile, tmp_path, message)
    assert capfd.readouterr().err == ""


def test_views_of_different_sizes(tmp_path, views):
    files.hci(tmp_path / "town", views)
    files.write_picture(tmp_path / "town" / "input_Cam007.png", views[0, 0][:, :-1])
    fails(
        InvalidLightField,
        tmp_path / "town",
        f"{tmp_path}/town: views have different sizes: input_Cam007.png has 27 x 20 pixels, "
        "the centre view 28 x 20. Export all views alike.",
    )


def test_views_of_different_kinds(tmp_path, views):
    files.pairs(tmp_path, views[..., :1], "{}_{}.png")
    files.write_picture(tmp_path / "0_1.png", views[0, 0])
    fails(
        InvalidLightField,
        tmp_path,
        f"{tmp_path}: 0_1.png is RGB, the centre view grey. Export all views alike.",
    )
    files.pairs(tmp_path, views, "{}_{}.png")
    files.write_picture(tmp_path / "0_1.png", views[0, 0].astype(np.uint16) * 8)
    fails(
        InvalidLightField,
        tmp_path,
        f"{tmp_path}: 0_1.png has 16 bits, the centre view 8, and their brightness does not tell "
        "how to scale it. Export all views alike.",
    )


CFG = files.CFG.format(rows=3, columns=3, width=28, height=20)
WAY_OUT = "Restore it, or remove the file to read the views without a camera."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no num_cams_y in [extrinsics]."),
        ("garbage", "not a readable configuration file."),
        ("\0\1\2", "not a readable configuration file."),
        (CFG.replace("baseline_mm = 50.0\n", ""), "has no baseline_mm in [extrinsics]."),
        (CFG[: CFG.index("[extrinsics]")], "has no num_cams_y in [extrinsics]."),
        (CFG.replace("50.0", "wide"), "baseline_mm = wide in [extrinsics], expected a number."),
        (CFG.replace("50.0", "-1"), "baseline_mm = -1 in [extrinsics], expected more than 0."),
        (CFG.replace("50.0", "1e99"), "baseline_mm = 1e99 in [extrinsics] makes no sense."),
        (CFG.replace("50.0", "nan"), "baseline_mm = nan in [extrinsics] makes no sense."),
        (
            CFG.replace("num_cams_x = 3", "num_cams_x = 0"),
            "num_cams_x = 0 in [extrinsics], expected a number of views.",
        ),
        (CFG.replace("-1.2", "5"), "disp_min = 5 exceeds disp_max = 1.4."),
    ],
)
def test_broken_parameters(tmp_path, views, text, message):
    files.hci(tmp_path / "town", views)
    path = tmp_path / "town" / "parameters.cfg"
    path.write_text(text)
    fails(UnreadableFile, tmp_path / "town", f"{path}: {message} {WAY_OUT}")
    path.write_bytes(b"\xff\xfe\xff")
    fails(UnreadableFile, path, f"{path}: not a readable configuration file. {WAY_OUT}")


def test_parameters_and_views_that_contradict(tmp_path, views):
    files.hci(tmp_path / "town", views)
    path = tmp_path / "town" / "parameters.cfg"
    path.write_text(CFG.replace("num_cams_y = 3", "num_cams_y = 2"))
    fails(
        InvalidLightField,
        tmp_path / "town",
        f"{tmp_path}/town: found input_Cam008.png, expected 6 views (2 x 3), the last one number "
        "005. Correct num_cams_x and num_cams_y in parameters.cfg, or pass --views UxV.",
    )
    alone = tmp_path / "alone" / "parameters.cfg"
    alone.parent.mkdir()
    alone.write_text(CFG)
    fails(
        InvalidLightField,
        alone,
        f"{tmp_path}/alone: has parameters.cfg but no views. Expected input_Cam000.png and so on.",
    )


def test_nothing_of_the_centre_view_is_known(tmp_path, views):
    path = tmp_path / "lost.npy"
    np.save(path, np.full(views.shape, np.nan, dtype=np.float32))
    fails(
        InvalidLightField,
        path,
        f"{path}: no pixel of the centre view is finite, opaque and valid, so there is nothing "
        "to estimate. Correct its mask, or export it again.",
    )


def test_hci_views_without_a_square(tmp_path, views):
    files.numbered(tmp_path, np.concatenate([views, views[:1]]), "input_Cam{:03d}.png")
    fails(
        InvalidLightField,
        tmp_path,
        f"{tmp_path}: found 12 views and no parameters.cfg, expected a square number of views. "
        "Pass --views UxV.",
    )
    found = readers.read(tmp_path, ReadOptions(views=(4, 3), check_orientation=False))
    assert found.grid == (4, 3)
    assert np.array_equal(found.views[:3], views)


# Files


def test_truncated_hdf5(tmp_path, views):
    path = tmp_path / "lf.h5"
    files.h5(path, {"LF": views})
    data = path.read_bytes()
    for size in (0, 100, 3000, len(data) - 1):
        path.write_bytes(data[:size])
        fails(UnreadableFile, path, f"{path}: damaged or not an HDF5 file. Copy it again.")


def test_wrong_rank(tmp_path, views):
    path = tmp_path / "lf.h5"
    files.h5(path, {"LF": views[0, 0], "x": np.zeros(4)})
    fails(
        InvalidLightField,
        path,
        f"{path}: holds no light field (LF 20 x 28 x 3, x 4). "
        "Expected an array of views, such as LF of 9 x 9 x 512 x 512 x 3.",
    )
    files.h5(path, {"LF": np.zeros((40, 50, 60, 70, 2))})
    fails(
        InvalidLightField,
        path,
        f"{path}, LF: an array of shape 40 x 50 x 60 x 70 x 2 is not a known kind of light field. "
        "Expected camera rows, columns, height, width, channels; or pass --axes uvhwc.",
    )
    np.save(tmp_path / "a.npy", views[0, 0])
    fails(
        InvalidLightField,
        tmp_path / "a.npy",
        f"{tmp_path}/a.npy: an array of shape 20 x 28 x 3 is not a known kind of light field. "
        "Expected camera rows, columns, height, width, channels; or pass --axes uvhwc.",
    )
    np.save(tmp_path / "a.npy", views[0, 0, 0])
    fails(
        InvalidLightField,
        tmp_path / "a.npy",
        f"{tmp_path}/a.npy: holds no light field (shape 28 x 3). "
        "Expected an array of views, such as 9 x 9 x 512 x 512 x 3.",
    )


def test_hdf5_without_arrays(tmp_path):
    path = tmp_path / "labels.h5"
    with h5py.File(path, "w") as file:
        file["names"] = ["a", "b"]
    fails(
        InvalidLightField,
        path,
        f"{path}: holds no light field (no arrays of numbers). "
        "Expected an array of views, such as LF of 9 x 9 x 512 x 512 x 3.",
    )


def test_hdf5_that_claims_more_than_it_holds(tmp_path):
    path = tmp_path / "lf.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("LF", (9, 9, 60000, 60000, 3), np.uint8, chunks=True)
    size = path.stat().st_size
    message = f"{path}: LF claims 874800000000 bytes and holds {size}. Copy or export it again."
    fails(UnreadableFile, path, message)


def test_mat_without_a_light_field(tmp_path):
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {"label": np.zeros((20, 30)), "n": 3})
    message = (
        f"{path}: holds no light field (label 20 x 30, n 1 x 1). "
        "Expected an array of views, such as LF of 9 x 9 x 512 x 512 x 3."
    )
    fails(InvalidLightField, path, message)
    files.matlab_73(path, {"label": np.zeros((20, 30))})
    fails(InvalidLightField, path, message.replace(", n 1 x 1", ""))


def test_truncated_mat(tmp_path, views):
    path = tmp_path / "a.mat"
    for write in (
        lambda: scipy.io.savemat(path, {"LF": views}),
        lambda: files.matlab_73(path, {"LF": views}),
    ):
        write()
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2])
        fails(UnreadableFile, path, f"{path}: damaged or not a MATLAB file. Copy it again.")
    path.write_bytes(b"")
    fails(UnreadableFile, path, f"{path}: damaged or not a MATLAB file. Copy it again.")


def test_damaged_numpy_files(tmp_path, views):
    for name, save in (("a.npy", np.save), ("a.npz", np.savez)):
        path = tmp_path / name
        save(path, views)
        data = path.read_bytes()
        for size in (0, 50, len(data) // 2):
            path.write_bytes(data[:size])
            message = f"{path}: damaged or not a NumPy file. Copy or export it again."
            fails(UnreadableFile, path, message)
    np.save(tmp_path / "b.npy", np.array([{"no": "pickles"}], dtype=object), allow_pickle=True)
    message = f"{tmp_path}/b.npy: damaged or not a NumPy file. Copy or export it again."
    fails(UnreadableFile, tmp_path / "b.npy", message)


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ("uvhw", "has 5 axes, of sizes 3 x 3 x 20 x 28 x 3. Expected one letter for each, "),
        ("uvhwz", "expected each of u, v, h, w, c at most once "),
        ("uuhwc", "expected each of u, v, h, w, c at most once "),
        ("unhwc", "expected each of u, v, h, w, c at most once "),
    ],
)
def test_wrong_axes(tmp_path, views, axes, message):
    np.save(tmp_path / "a.npy", views)
    with pytest.raises(InvalidOption, match=f"--axes {axes}: ") as caught:
        readers.read(tmp_path / "a.npy", ReadOptions(axes=axes))
    assert message in str(caught.value)


def test_axes_that_make_no_sense(tmp_path, views):
    np.save(tmp_path / "a.npy", np.zeros((70, 80, 3, 3, 3), dtype=np.uint8))
    fails(
        InvalidLightField,
        tmp_path / "a.npy",
        f"{tmp_path}/a.npy: 70 x 80 views are not possible. "
        "Pass the order of the axes with --axes, such as uvhwc.",
        axes="uvhwc",
    )


# Ground truth


def test_damaged_ground_truth(tmp_path, views):
    files.pairs(tmp_path, views, "{}_{}.png", 1)
    np.save(tmp_path / "2_2_disparity.npy", np.zeros((2, 20, 28)))
    with pytest.raises(UnreadableFile) as caught:
        readers.read_ground_truth(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}/2_2_disparity.npy: holds float64 of shape (2, 20, 28), "
        "expected one disparity map (height, width)."
    )
    (tmp_path / "2_2_disparity.npy").write_bytes(b"?")
    with pytest.raises(UnreadableFile, match="damaged or not a NumPy file"):
        readers.read_ground_truth(tmp_path)
