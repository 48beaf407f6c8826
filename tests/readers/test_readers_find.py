"""Finding light fields in a tree: all of them, quickly, and never our own results."""

import os
import time

import lightfield_files as files
import numpy as np
import pytest

from oaccdepth import readers
from oaccdepth.disparity import DisparityMap
from oaccdepth.errors import InvalidLightField
from oaccdepth.lightfield import LightField
from oaccdepth.options import WriteOptions
from oaccdepth.writers import results
from oaccdepth.writers.masks import write_masks
from oaccdepth.writers.scenes import write_light_field


@pytest.fixture(scope="module")
def rendered():
    return files.render((3, 3), (24, 30))


def test_every_kind_is_found(tmp_path, rendered):
    views, truth = rendered
    files.hci(tmp_path / "b" / "town", views, truth)
    files.urban(tmp_path / "a" / "Image1", views, truth)
    files.sintel(tmp_path / "c" / "alley", views, truth)
    files.hci_old(tmp_path / "lf.h5", views, truth)
    files.matlab_73(tmp_path / "d__Decoded.mat", {"LF": views})
    np.save(tmp_path / "e.npy", views)
    np.savez(tmp_path / "f.npz", views=views)
    files.write_picture(tmp_path / "g_eslf.png", views[0, 0])
    write_light_field(LightField(views), tmp_path / "h.png")
    files.write_picture(tmp_path / "photo.png", views[0, 0])
    files.h5(tmp_path / "labels.h5", {"GT_LABELS": truth})
    np.save(tmp_path / "disparity.npy", views)
    (tmp_path / ".hidden").mkdir()
    np.save(tmp_path / ".hidden" / "a.npy", views)
    found = [str(path.relative_to(tmp_path)) for path in readers.find(tmp_path)]
    assert found == [
        "a/Image1",
        "b/town",
        "c/alley",
        "d__Decoded.mat",
        "e.npy",
        "f.npz",
        "g_eslf.png",
        "h.png",
        "lf.h5",
    ]
    assert readers.find(tmp_path / "b" / "town") == [tmp_path / "b" / "town"]
    assert readers.find(tmp_path / "e.npy") == [tmp_path / "e.npy"]
    for path in readers.find(tmp_path):
        if path.name != "g_eslf.png":
            assert readers.read(path).grid == (3, 3)


def test_our_own_results_are_not_light_fields(tmp_path, rendered):
    views, truth = rendered
    files.hci(tmp_path / "town", views, truth)
    masks = np.ones((9, 9, 24, 30), dtype=np.float32)
    result = DisparityMap(truth, np.ones_like(truth), masks=masks)
    for name in ("town", "boxes"):
        results.write(result, tmp_path / "results" / name, WriteOptions(formats=("npy", "png16")))
        write_masks({".": masks}, tmp_path / "results" / name / "occlusion")
    assert readers.find(tmp_path) == [tmp_path / "town"]
    # Results beside the views do not hide them, either.
    results.write(result, tmp_path / "town")
    assert readers.find(tmp_path) == [tmp_path / "town"]
    assert np.array_equal(readers.read(tmp_path / "town").views, views)


def test_damaged_light_fields_are_found_to_be_reported(tmp_path, rendered):
    views, truth = rendered
    files.hci(tmp_path / "broken", views, truth)
    (tmp_path / "broken" / "parameters.cfg").write_text("?")
    files.hci(tmp_path / "incomplete", views, truth)
    (tmp_path / "incomplete" / "input_Cam003.png").unlink()
    files.h5(tmp_path / "lf.h5", {"LF": views})
    (tmp_path / "lf.h5").write_bytes((tmp_path / "lf.h5").read_bytes()[:-10])
    found = [path.name for path in readers.find(tmp_path)]
    assert found == ["broken", "incomplete", "lf.h5"]


def test_broken_scenes_are_found_to_be_reported(tmp_path, rendered):
    views, truth = rendered
    for name, kept in (("two", 2), ("none", 0), ("array", 0)):
        files.hci(tmp_path / name, views, truth)
        for path in sorted((tmp_path / name).glob("input_Cam*"))[kept:]:
            path.unlink()
    np.save(tmp_path / "array" / "views.npy", views)  # the same scene exists in another form
    files.hci(tmp_path / "no_grid", views)
    (tmp_path / "no_grid" / "parameters.cfg").unlink()
    for path in sorted((tmp_path / "no_grid").glob("input_Cam*"))[5:]:
        path.unlink()
    found = [path.relative_to(tmp_path).as_posix() for path in readers.find(tmp_path)]
    assert found == ["array/views.npy", "no_grid", "none", "two"]
    with pytest.raises(InvalidLightField) as error:
        readers.read(tmp_path / "none")
    assert str(error.value) == (
        f"{tmp_path}/none: has parameters.cfg but no views. Expected input_Cam000.png and so on."
    )


def test_many_light_fields_in_one_folder(tmp_path, rendered):
    # Nine numbered pictures, each a whole light field, are not nine views of one.
    for index in range(9):
        write_light_field(LightField(rendered[0]), tmp_path / f"scene{index}.png")
        files.write_picture(tmp_path / f"scene{index}_eslf.png", rendered[0][0, 0])
    assert len(readers.find(tmp_path)) == 18


def test_links_do_not_lead_astray(tmp_path, rendered):
    files.hci(tmp_path / "a" / "town", rendered[0])
    os.symlink(tmp_path, tmp_path / "a" / "loop")
    os.symlink(tmp_path / "gone", tmp_path / "dangling")
    assert readers.find(tmp_path) == [tmp_path / "a" / "town"]


def test_thousands_of_files(tmp_path):
    picture = files.png_bytes(np.zeros((4, 4), dtype=np.uint8))
    for scene in range(30):
        folder = tmp_path / f"set{scene % 3}" / f"scene{scene:02d}"
        folder.mkdir(parents=True)
        for index in range(81):
            (folder / f"input_Cam{index:03d}.png").write_bytes(picture)
        (folder / "masks").mkdir()
        for index in range(20):
            (folder / "masks" / f"{index}.txt").touch()
    photos = tmp_path / "photos"
    photos.mkdir()
    for index in range(1000):
        (photos / f"IMG_{index:04d}.png").touch()
    start = time.process_time()
    found = readers.find(tmp_path)
    assert time.process_time() - start < 2
    assert len(found) == 30


def test_an_array_of_two_views_is_listed_with_the_reason(tmp_path):
    """Before, it was taken for numbered pictures."""
    path = tmp_path / "two.npy"
    np.save(path, np.zeros((1, 2, 32, 32, 3), np.uint8))
    assert readers.find_unread(tmp_path, []) == [
        (
            path,
            "has 1 x 2 views, at least 3 are needed. "
            "If the views lie in another grid, pass --views UxV.",
        )
    ]
