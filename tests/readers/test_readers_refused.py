"""Pictures that are not light fields, claim huge sizes, or come raw from a camera."""

import json

import h5py
import lightfield_files as files
import numpy as np
import pytest
import scipy.io
from lightfield_files import fails

from oaccdepth import readers
from oaccdepth.errors import InvalidLightField, UnknownFormat, UnreadableFile
from oaccdepth.files import limits
from oaccdepth.readers import assembly, lytro_raw


def test_size_that_is_no_multiple_of_the_grid(tmp_path, views):
    picture = files.lenslet(views)[:, :-1]
    files.write_picture(tmp_path / "a_eslf.png", picture)
    fails(
        InvalidLightField,
        tmp_path / "a_eslf.png",
        f"{tmp_path}/a_eslf.png: 83 x 60 pixels are not a multiple of 14 x 14 "
        "(columns x rows of views). Pass the grid with --views ROWSxCOLUMNS.",
    )
    files.write_picture(tmp_path / "a.png", picture)
    fails(
        InvalidLightField,
        tmp_path / "a.png",
        f"{tmp_path}/a.png: 83 x 60 pixels are not a multiple of 3 x 3 "
        "(columns x rows of views). Pass the grid with --views ROWSxCOLUMNS.",
        views=(3, 3),
    )


def test_a_picture_that_is_no_mosaic(tmp_path, views):
    files.write_picture(tmp_path / "photo.png", files.render((3, 3), (96, 96))[0][0, 0])
    fails(
        InvalidLightField,
        tmp_path / "photo.png",
        f"{tmp_path}/photo.png: one picture of 96 x 96 pixels, in which no grid of views can be "
        "seen. Pass --views ROWSxCOLUMNS if it holds several.",
    )
    files.write_picture(tmp_path / "input_Cam000.png", views[0, 0])
    with pytest.raises(InvalidLightField, match="If it is one view of many, give its folder"):
        readers.read(tmp_path / "input_Cam000.png")


@pytest.mark.parametrize("name", ["bomb.png", "bomb_eslf.png", "scene/input_Cam000.png"])
def test_decompression_bombs(tmp_path, views, name):
    path = tmp_path / name
    if "/" in name:
        files.hci(path.parent, views)
    files.png_claiming(60000, 60000, path)
    most = 67 if "/" in name else 339
    options = {} if "/" in name else {"views": (3, 3), "layout": "mosaic"}
    fails(
        UnreadableFile,
        path.parent if "/" in name else path,
        f"{path}: claims 60000 x 60000 pixels, more than {most} million. "
        "Check the file, or give a smaller picture.",
        **options,
    )


def test_a_large_picture_of_nothing(tmp_path):
    path = tmp_path / "bomb.png"
    files.png_claiming(18000, 18000, path)  # few enough pixels for a mosaic
    fails(
        UnreadableFile,
        path,
        f"{path}: claims 18000 x 18000 pixels in {path.stat().st_size} bytes, "
        "too few for any picture of that size. Check the file.",
        views=(9, 9),
    )


def test_arrays_of_zeros_are_bombs_when_they_are_large(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "FREE_BYTES", 1 << 20)
    views = np.zeros((9, 9, 100, 200, 3), dtype=np.uint8)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("LF", data=views, chunks=views.shape, compression="gzip")
    np.savez_compressed(tmp_path / "a.npz", LF=views)
    scipy.io.savemat(tmp_path / "a.mat", {"LF": views}, do_compression=True)
    for path in sorted(tmp_path.iterdir()):
        with pytest.raises(UnreadableFile) as caught:
            readers.read(path)
        assert str(caught.value).startswith(f"{path}: LF claims {views.nbytes} bytes and holds ")
        assert str(caught.value).endswith(". Copy or export it again.")


def test_light_fields_that_need_too_much_memory(tmp_path, monkeypatch, views):
    monkeypatch.setattr(assembly, "MOST_BYTES", 1000)
    np.save(tmp_path / "a.npy", views)
    fails(
        InvalidLightField,
        tmp_path / "a.npy",
        f"{tmp_path}/a.npy: 3 x 3 views of 28 x 20 pixels need 0.0 GiB. "
        "Use fewer with --use-views, or smaller pictures.",
    )


# Refused


@pytest.mark.parametrize("ending", ["lfp", "lfr", "lfx", "bin"])
def test_raw_lytro_pictures(tmp_path, ending):
    path = tmp_path / f"IMG_1.{ending}"
    files.lytro_container(path)
    fails(
        UnknownFormat,
        path,
        f"{path}: a raw Lytro picture (Lytro, Inc. ILLUM, 7728 x 5368 pixels, 2015-03-01, "
        "ISO 80, focal length 9.5 mm, f/2.0, exposed 0.004 s); "
        "decoding it takes the camera's white images. "
        "Decode it with LFToolbox (MATLAB) or PlenoptiCam (pip install plenopticam), "
        "and give the __Decoded.mat or the folder of views.",
    )


def test_the_metadata_is_what_the_container_holds(tmp_path):
    path = tmp_path / "a.lfp"
    files.lytro_container(path)
    with path.open("rb") as file:
        texts = [json.loads(text) for text in lytro_raw._texts(file)]
    assert texts[0]["picture"]["frameArray"][0]["frame"]["metadataRef"] == "sha1-" + "0" * 40
    assert texts[1]["camera"]["model"] == "ILLUM"
    path.write_bytes(path.read_bytes()[:60])
    assert lytro_raw.read_metadata(path) == []
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(UnknownFormat, match="a raw Lytro picture; decoding it"):
        readers.read(path)


def test_raytrix(tmp_path):
    path = tmp_path / "a.ray"
    path.write_bytes(b"?")
    fails(
        UnknownFormat,
        path,
        f"{path}: a raw Raytrix picture. Export its views with the camera's own software, "
        "and give their folder.",
    )


def test_quilts(tmp_path, views):
    path = tmp_path / "doll_qs8x6a0.75.png"
    files.write_picture(path, views[0, 0])
    reason = "Cut it into view_00_00.png, view_00_01.png, ..., from bottom left to top right."
    message = f"{path}: a Looking Glass quilt of 48 views, all of one camera row. {reason}"
    fails(UnknownFormat, path, message)
    path = tmp_path / "doll.jpg"
    message = f"{path}: a Looking Glass quilt, all of one camera row. {reason}"
    entry = '{"LKGColumns": 8}'
    for content in (
        b"\xff\xd8 Exif " + entry.encode(),
        b"\xff\xd8 Exif UNICODE\0" + entry.encode("utf-16-le"),
        b"\x89PNG" + bytes(200_000) + entry.encode(),  # after the picture
    ):
        path.write_bytes(content)
        fails(UnknownFormat, path, message)


def test_other_files(tmp_path):
    path = tmp_path / "film.avi"
    path.write_bytes(b"RIFF")
    fails(
        UnknownFormat,
        path,
        f"{path}: not a light field that we know. See oaccdepth formats for what is recognised.",
    )
