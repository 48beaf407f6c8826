"""Every format gives the same light field, with its axes and the sign of its disparity right."""

import lightfield_files as files
import numpy as np
import pytest
import scipy.io

from oaccdepth import readers
from oaccdepth.lightfield import Camera
from oaccdepth.options import ReadOptions


@pytest.fixture(scope="module")
def rendered():
    return files.render()


@pytest.fixture(scope="module")
def vignetted():
    return files.vignetted()


def test_the_rendered_scene_itself_is_right(rendered):
    views, truth = rendered
    assert files.mismatch(views, truth) < 6
    assert files.is_oriented(views, truth)
    assert not files.is_oriented(views[:, ::-1], truth)
    assert not files.is_oriented(views.swapaxes(0, 1), truth)


# name: (writer, path, options, recognised as)
FORMATS = {
    "hci": (files.hci, "scene", {}, "hci"),
    "urban": (files.urban, "Image1", {}, "view-folder"),
    "dlfd": (files.dlfd, "scene", {}, "view-folder"),
    "sintel": (files.sintel, "scene", {}, "frames"),
    "hci-old": (files.hci_old, "lf.h5", {}, "hdf5"),
    "scene-h5": (
        lambda path, views, truth: files.h5(path, {"LF": views, "disp_lowres": truth}),
        "scene.h5",
        {},
        "hdf5",
    ),
    "matlab-tools": (
        lambda path, views, truth: scipy.io.savemat(
            path, {"LF": {"LF": views, "disp_lowres": truth, "H": 0.1}}, do_compression=True
        ),
        "LF.mat",
        {},
        "matlab",
    ),
    "matlab-tools-7.3": (
        lambda path, views, truth: files.matlab_73(path, {"LF/LF": views, "LF/disp_lowres": truth}),
        "LF.mat",
        {},
        "matlab",
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_formats_with_ground_truth(tmp_path, rendered, name):
    write, place, options, format_name = FORMATS[name]
    views, truth = rendered
    write(tmp_path / place, views, truth)
    found = readers.read(tmp_path / place, ReadOptions(**options))
    assert np.array_equal(found.views, views)
    assert (found.format, found.source, found.notes[:0]) == (format_name, place, ())
    assert files.is_oriented(found.views, truth)
    known = readers.read_ground_truth(tmp_path / place)
    assert np.allclose(known, truth, atol=1e-5)
    assert readers.find(tmp_path) == [tmp_path / place]


def pictures(name, base=0):
    return lambda path, views: files.pairs(path, views, name, base)


def one_picture(arrange, *arguments):
    return lambda path, views: files.write_picture(path, arrange(views, *arguments))


def array(order):
    axes = ["uvhwc".index(letter) for letter in order]
    return lambda views: views.transpose(axes)


PLAIN = {
    "kaist": (pictures("view_{}_{}.png", 1), "scene", {}),
    "epinet": (pictures("2067_{:02d}_{:02d}.png", 1), "scene", {}),
    "row-x-column": (pictures("r{}c{}.bmp"), "scene", {}),
    "tiff": (pictures("{:02d}_{:02d}.tif"), "scene", {}),
    "webp-named": (pictures("view {:02d} {:02d}.png"), "scene", {}),
    "plenopticam": (pictures("viewpoints_5px/{:02d}_{:02d}.png"), "scene", {}),
    "sai": (lambda p, v: files.pairs(p, v[:, ::-1], "SAI_{:02d}_{:02d}.png", 1), "scene", {}),
    "mit": (lambda p, v: files.numbered(p, v[::-1], "dragons-{:02d}.png", 1), "scene", {}),
    "numbered": (lambda p, v: files.numbered(p, v, "img{:03d}.png"), "scene", {}),
    "numbered-columns": (
        lambda p, v: files.numbered(p, v.swapaxes(0, 1), "img{:03d}.png", 1),
        "scene",
        {},
    ),
    "numbered-columns-asked": (
        lambda p, v: files.numbered(p, v.swapaxes(0, 1), "img{:03d}.png", 1),
        "scene",
        {"order": "columns", "check_orientation": False},
    ),
    "gantry": (files.gantry, "rectified", {}),
    "gantry-knights": (lambda p, v: files.gantry(p, v, ".png"), "rectified", {}),
    "serpentine-counter": (files.serpentine_counter, "views", {}),
    "hci-without-cfg": (lambda p, v: files.numbered(p, v, "input_Cam{:03d}.png"), "scene", {}),
    "pattern": (
        pictures("cam-c{1}-r{0}-depth.png"),
        "scene",
        {"pattern": r"c(?P<column>\d+)-r(?P<row>\d+)"},
    ),
    "pattern-index": (
        lambda p, v: files.numbered(p, v, "7of{:d}.png"),
        "scene",
        {"pattern": r"of(\d+)"},
    ),
    "mosaic": (one_picture(files.mosaic), "all.png", {}),
    "mosaic-asked": (one_picture(files.mosaic), "all.png", {"views": (5, 5), "layout": "mosaic"}),
    "mosaic-columns-asked": (
        lambda p, v: files.write_picture(p, files.mosaic(v.swapaxes(0, 1))),
        "all.png",
        {"views": (5, 5), "order": "columns", "check_orientation": False},
    ),
    "mosaic-serpentine": (one_picture(files.mosaic, "serpentine"), "all.png", {"views": (5, 5)}),
    "mosaic-serpentine-columns": (one_picture(files.mosaic, "serpentine-columns"), "all.png", {}),
    "lenslet": (one_picture(files.lenslet), "all.png", {"views": (5, 5)}),
    "lenslet-found": (one_picture(files.lenslet), "all.png", {}),
    "eslf": (one_picture(files.lenslet), "a_eslf.png", {"views": (5, 5)}),
    "fslfde": (lambda p, v: files.h5(p, {"image": array("hwcuv")(v)}), "a.h5", {}),
    "npy": (lambda p, v: np.save(p, v), "a.npy", {}),
    "npy-hwuvc": (lambda p, v: np.save(p, array("hwuvc")(v)), "a.npy", {}),
    "npy-asked": (lambda p, v: np.save(p, array("cwhvu")(v)), "a.npy", {"axes": "cwhvu"}),
    "npy-stack": (lambda p, v: np.save(p, v.reshape(-1, *v.shape[2:])), "a.npy", {}),
    "npz": (lambda p, v: np.savez(p, light_field=v), "a.npz", {}),
    "matlab-7.3": (lambda p, v: files.matlab_73(p, {"data": v}), "a.mat", {}),
    "matlab-7.3-struct": (lambda p, v: files.matlab_73(p, {"LF/LF": v}), "LF.mat", {}),
    "matlab-5": (lambda p, v: scipy.io.savemat(p, {"lightField": v}), "a.mat", {}),
    "matlab-5-struct": (lambda p, v: scipy.io.savemat(p, {"LF": {"LF": v, "f": 1}}), "a.mat", {}),
}


@pytest.mark.parametrize("name", PLAIN)
def test_formats_of_views(tmp_path, rendered, name):
    write, place, options = PLAIN[name]
    views, truth = rendered
    write(tmp_path / place, views)
    found = readers.read(tmp_path / place, ReadOptions(**options))
    assert np.array_equal(found.views, views)
    assert files.is_oriented(found.views, truth)


def test_jpeg_views(tmp_path, rendered):
    views, truth = rendered
    files.pairs(tmp_path / "scene", views, "a_{}_{}.jpg")
    found = readers.read(tmp_path / "scene")
    assert np.abs(found.views.astype(int) - views).mean() < 12
    assert files.is_oriented(found.views, truth)


def test_basic_lfsr_is_luminance_side_by_side(tmp_path, rendered):
    views, truth = rendered
    files.basic_lfsr(tmp_path / "a.h5", views)
    found = readers.read(tmp_path / "a.h5", ReadOptions(views=(5, 5)))
    assert found.views.shape == (5, 5, 60, 76, 1)
    assert files.is_oriented(found.views * np.float32(255), truth)
    (tmp_path / "SR_5x5_2x").mkdir()
    files.basic_lfsr(tmp_path / "SR_5x5_2x" / "a.h5", views)
    assert np.array_equal(readers.read(tmp_path / "SR_5x5_2x" / "a.h5").views, found.views)


def test_hci_camera_and_range(tmp_path, rendered):
    files.hci(tmp_path / "town", rendered[0])
    for path in (tmp_path / "town", tmp_path / "town" / "parameters.cfg"):
        found = readers.read(path)
        assert (found.source, found.format) == ("town", "hci")
        assert found.camera == Camera(50.0, 100.0, 35.0, 8000.0)
        assert found.disparity_range == (-1.2, 1.4)
        assert found.reason == "input_Cam000.png ... and parameters.cfg"
    wide = readers.read(tmp_path / "town", ReadOptions(stride=2))
    assert wide.grid == (3, 3)
    assert wide.camera == Camera(50.0, 100.0, 35.0, 8000.0)
    assert wide.disparity_range == (-1.2, 1.4)
    assert wide.camera_places[0, 2].tolist() == [-2, 2]
    assert wide.notes == ("5 x 5 views: 3 x 3 are used, with stride 2.",)


def test_ground_truth_is_per_step_of_the_file(tmp_path, rendered):
    views, truth = rendered
    files.hci(tmp_path / "town", views, truth)
    wide = readers.read_ground_truth(tmp_path / "town", ReadOptions(stride=2))
    assert np.allclose(wide, truth)
    found = readers.read(tmp_path / "town", ReadOptions(stride=2))
    assert files.mismatch(found.views, 2 * wide) < 8
    files.hci(tmp_path / "blind", views)
    assert readers.read_ground_truth(tmp_path / "blind") is None


def test_dlfd_ground_truth_in_matlab_files(tmp_path, rendered):
    views, truth = rendered
    files.pairs(tmp_path / "scene", views, "lf_{}_{}.png", 1)
    scipy.io.savemat(tmp_path / "scene" / "disparity_3_3.mat", {"disparity": truth})
    assert np.array_equal(readers.read_ground_truth(tmp_path / "scene"), truth)
    files.matlab_73(tmp_path / "scene" / "disparity_3_3.mat", {"disparity": truth})
    assert np.array_equal(readers.read_ground_truth(tmp_path / "scene"), truth)


def test_sintel_frames_are_chosen_by_pattern(tmp_path, rendered):
    views, truth = rendered
    files.sintel(tmp_path / "alley", views, truth)
    assert readers.read(tmp_path / "alley").notes == (
        "Frame 000.png of 2; choose another with --pattern.",
    )
    other = readers.read(tmp_path / "alley", ReadOptions(pattern="001", check_orientation=False))
    assert np.array_equal(other.views, views[:, :, ::-1])


# Lytro


def test_lftoolbox_decodes(tmp_path, vignetted):
    views, truth = vignetted
    files.matlab_73(tmp_path / "IMG__Decoded.mat", {"LF": files.decoded(views)})
    found = readers.read(tmp_path / "IMG__Decoded.mat")
    assert found.grid == (9, 9)
    assert found.views.dtype == np.uint16
    assert found.notes == (
        "15 x 15 views: the central 9 x 9 are used.",
        "Dark, linear values: display gamma 2.2 applied (--gamma 1 keeps them).",
    )
    assert found.valid is None  # the circle of radius 6.2 holds all of 9 x 9
    assert files.is_oriented((found.views >> 8).astype(np.uint8), truth)
    expected = views[3:12, 3:12] / 255 * 0.5 ** (1 / 2.2)
    assert np.abs(found.views / 65535 - expected).max() < 0.01
    linear = readers.read(tmp_path / "IMG__Decoded.mat", ReadOptions(gamma=1.0))
    assert np.array_equal(linear.views, files.decoded(views)[3:12, 3:12, ..., :3])


def test_weight_zero_is_masked(tmp_path, vignetted):
    views, _ = vignetted
    weight = np.ones(views.shape[:4])
    weight[5, 6, 10:20, 30:] = 0
    weight[3, 3] = 0
    files.matlab_73(tmp_path / "a.mat", {"LF": files.decoded(views, weight)})
    found = readers.read(tmp_path / "a.mat", ReadOptions(gamma=1.0))
    assert np.array_equal(found.valid, weight[3:12, 3:12] > 0)
    assert found.missing_views == [(0, 0)]


def test_only_exposed_views_are_used(tmp_path):
    views, _ = files.vignetted(radius=4.6)
    files.matlab_73(tmp_path / "a.mat", {"LF": files.decoded(views)})
    found = readers.read(tmp_path / "a.mat")
    assert found.grid == (9, 9)  # 69 of 81 views are exposed
    assert len(found.missing_views) == 12
    assert (0, 0) in found.missing_views
    assert found.notes[1] == "12 views too dark, masked out."
    assert len(found.notes) == 3  # and gamma; none of them is applied twice
    views, _ = files.vignetted(radius=3.2)
    files.matlab_73(tmp_path / "b.mat", {"LF": files.decoded(views)})
    assert readers.read(tmp_path / "b.mat").grid == (5, 5)


def test_dark_views_of_a_small_decode(tmp_path):
    views, _ = files.vignetted((9, 9), (24, 32), radius=4.9)  # the first Lytro camera's
    files.matlab_73(tmp_path / "a.mat", {"LF": files.decoded(views)})
    found = readers.read(tmp_path / "a.mat")
    assert found.grid == (9, 9)
    assert found.missing_views[:3] == [(0, 0), (0, 1), (0, 7)]
    assert "12 views too dark, masked out." in found.notes
    files.matlab_73(tmp_path / "b.mat", {"LF": views})  # no weights, so not decoded: taken as it is
    assert readers.read(tmp_path / "b.mat").valid is None


@pytest.mark.parametrize("bright", [6, 7])
def test_the_exposed_centre_of_an_even_array(tmp_path, bright):
    views, _ = files.vignetted((14, 14), (24, 32), 99)
    u, v = np.ogrid[:14, :14]
    exposed = np.hypot(u - bright, v - bright) < 5.9
    views = (views * exposed[..., None, None, None]).astype(np.uint8)
    files.write_picture(tmp_path / "a_eslf.png", files.lenslet(views))
    found = readers.read(tmp_path / "a_eslf.png")
    first = bright - 4
    assert found.grid == (9, 9)
    assert np.array_equal(found.views, views[first : first + 9, first : first + 9])
    assert found.format == "eslf"


def test_dark_corners_are_masked(tmp_path):
    views, _ = files.vignetted((15, 15), (24, 32), 99)
    views = np.repeat(np.repeat(views, 2, axis=2), 2, axis=3)
    views[4, 4, :20, :20] = 0
    views[5, 5, 16:32, 16:32] = 0  # inside: something black in the scene
    files.pairs(tmp_path / "a", views, "viewpoints_15px/{:02d}_{:02d}.png")
    found = readers.read(tmp_path / "a")
    assert found.valid is not None
    assert not found.valid[1, 1, :16, :16].any()
    assert found.valid[1, 1, 32:, 32:].all()
    assert found.valid[4, 4].all() and found.valid[2, 2].all()
    assert "1 view with dark corners, masked out there." in found.notes


def test_lytro_warp_stack(tmp_path):
    views, _ = files.vignetted((14, 14), (24, 32), 99)
    alpha = np.full((*views.shape[:4], 1), 255, dtype=np.uint8)
    rgba = np.concatenate([views, alpha], axis=-1)
    files.numbered(tmp_path / "a", rgba, "IMG_view000_warp_image{:03d}_x.png")
    found = readers.read(tmp_path / "a")
    assert np.array_equal(found.views, views[3:12, 3:12])
    assert found.valid is None


def test_a_sideways_matlab_array_with_axes(tmp_path, rendered):
    views, _ = rendered
    files.matlab_73(tmp_path / "a.mat", {"LF": views.transpose(2, 3, 4, 0, 1)})
    assert np.array_equal(readers.read(tmp_path / "a.mat").views, views)
    found = readers.read(tmp_path / "a.mat", ReadOptions(axes="hwcuv"))
    assert np.array_equal(found.views, views)
