"""Meshes from files: what is read, and the errors for files that cannot be read."""

import logging

import cv2
import numpy as np
import pytest

from oaccdepth.errors import InvalidOption, UnreadableFile
from oaccdepth.files.regular import read_small
from oaccdepth.rendering import objects, wavefront
from oaccdepth.rendering.objects import find_objects, read_object

# A unit square in the plane z = 2, as one polygon, and its texture: red above, blue below.
SQUARE = """
mtllib square.mtl
v 0 0 2
v 4 0 2
v 4 2 2
v 0 2 2
vt 0 0
vt 1 0
vt 1 1
vt 0 1
usemtl paint
f 1/1 2/2 3/3 4/4
"""
MATERIAL = "newmtl paint\nKd 1 1 1\nmap_Kd paint.png\n"


def write_square(folder, text=SQUARE, material=MATERIAL, texture=True):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "square.obj").write_text(text)
    (folder / "square.mtl").write_text(material)
    if texture:
        picture = np.zeros((8, 8, 3), np.uint8)
        picture[:4, :, 2], picture[4:, :, 0] = 255, 255  # BGR
        cv2.imwrite(str(folder / "paint.png"), picture)
    return folder / "square.obj"


def write_packed(path, **changes):
    arrays = {
        "vertices": np.array([[0, 0, 0], [32767, 0, 0], [0, 32767, 0]], np.int16),
        "uv": np.array([[0, 0], [65535, 0], [0, 65535]], np.uint16),
        "faces": np.array([[0, 1, 2]], np.uint16),
        "uv_faces": np.array([[0, 1, 2]], np.uint16),
    }
    np.savez(path, **(arrays | changes))
    cv2.imwrite(str(path.with_suffix(".jpg")), np.full((8, 8, 3), 200, np.uint8))
    return path


def says(path):
    with pytest.raises((UnreadableFile, InvalidOption)) as caught:
        read_object(path) if path.is_file() else find_objects(path)
    return str(caught.value)


def test_an_obj_is_centred_scaled_and_textured(tmp_path):
    (mesh,) = read_object(write_square(tmp_path))
    assert len(mesh.faces) == 2
    corners = mesh.points[mesh.faces].reshape(-1, 3)
    np.testing.assert_allclose(corners.min(axis=0), [-1, -0.5, 0])
    np.testing.assert_allclose(corners.max(axis=0), [1, 0.5, 0])
    picture = mesh.material.texture.picture
    for point, place in zip(corners, mesh.places[mesh.place_faces].reshape(-1, 2), strict=True):
        y = min(int(place[1] * 8), 7)  # y runs downwards, as in pictures
        assert picture[y, 0].tolist() == ([1, 0, 0] if point[1] > 0 else [0, 0, 1])


def test_negative_numbers_and_faces_without_places(tmp_path):
    text = "v 0 0 0\nv 1 0 0\nv 0 1 0\nf -3 -2 -1\nf 1//1 2//1 3//1\n"
    (mesh,) = read_object(write_square(tmp_path, text))
    assert mesh.faces[0].tolist() == mesh.faces[1].tolist()
    np.testing.assert_allclose(mesh.material.texture.picture, 0.6)  # no material: grey


def test_a_part_for_each_material(tmp_path):
    material = MATERIAL + "newmtl plain\nKd 0.5 0.25 0\n"
    parts = read_object(write_square(tmp_path, SQUARE + "usemtl plain\nf 1 2 4\n", material))
    assert [len(part.faces) for part in parts] == [2, 1]
    np.testing.assert_allclose(parts[1].material.texture.picture[0, 0], [0.5, 0.25, 0])


def test_textures_lie_where_google_scanned_objects_have_them(tmp_path):
    path = write_square(tmp_path / "shoe" / "meshes")
    textures = tmp_path / "shoe" / "materials" / "textures"
    textures.mkdir(parents=True)
    (path.parent / "paint.png").rename(textures / "paint.png")
    assert find_objects(tmp_path) == [path]
    assert read_object(path)[0].material.texture.picture.shape == (8, 8, 3)


def test_packed_meshes(tmp_path):
    path = write_packed(tmp_path / "cup.npz")
    (mesh,) = read_object(path)
    assert mesh.points[mesh.faces].reshape(-1, 3).max() == pytest.approx(1)
    assert mesh.material.texture.picture[0, 0, 0] == pytest.approx(200 / 255, abs=0.01)


@pytest.mark.parametrize("options", ["-s 1 1 1", "-clamp on -o 0.5 0 0", "-bm 1.0 -blendu off"])
def test_options_before_the_name_of_a_texture(tmp_path, options):
    material = MATERIAL.replace("paint.png", f"{options} paint.png")
    (mesh,) = read_object(write_square(tmp_path, material=material))
    assert mesh.material.texture.picture.shape == (8, 8, 3)


def test_a_large_texture_is_scaled_down(tmp_path, monkeypatch):
    monkeypatch.setattr(objects, "MOST_TEXELS", 4)
    (mesh,) = read_object(write_square(tmp_path))
    assert mesh.material.texture.picture.shape == (4, 4, 3)


def test_triangles_without_area_are_left_out(tmp_path, caplog):
    path = write_square(tmp_path, SQUARE + "f 1 1 2\n")
    with caplog.at_level(logging.INFO, "oaccdepth"):
        assert len(read_object(path)[0].faces) == 2
    assert caplog.messages == [f"{path}: 1 triangles without area are left out."]


# What cannot be read


def test_no_folder_and_no_objects(tmp_path):
    assert says(tmp_path / "nowhere") == f"--objects {tmp_path / 'nowhere'}: no such folder."
    (tmp_path / "photo.jpg").write_bytes(b"")
    assert says(tmp_path) == (
        f"--objects {tmp_path}: no objects in it. "
        "Expected .obj files with textures, or pairs of .npz and .jpg."
    )


def test_a_missing_texture(tmp_path):
    path = write_square(tmp_path, texture=False)
    assert says(path) == (
        f"{path}: its texture paint.png is missing. Put it beside the mesh, or take the mesh out."
    )
    packed = write_packed(tmp_path / "cup.npz")
    packed.with_suffix(".jpg").unlink()
    assert says(packed) == (
        f"{packed}: its texture cup.jpg is missing. Put it beside the mesh, or take the mesh out."
    )


@pytest.mark.parametrize(
    "line", ["f 1 2 9", "f 1 2", "v 1 two 3", "f 1/9 2/1 3/1", "f a b c", "f 0 1 2", "f -9 1 2"]
)
def test_a_line_that_cannot_be_understood(tmp_path, line):
    path = write_square(tmp_path, SQUARE + line + "\n")
    assert says(path) == (f"{path}: line 13 cannot be understood: {line!r}. Export the mesh again.")


def test_points_that_are_not_in_space(tmp_path):
    path = write_square(tmp_path, "v 1 2\nv 1 2 3\nv 3 2 1\nf 1 2 3\n")
    assert says(path) == (
        f"{path}: points have different numbers of coordinates, expected three. "
        "Export the mesh again."
    )
    path = write_square(tmp_path, "v 1 2\nv 2 3\nv 3 2\nf 1 2 3\n")
    assert says(path).startswith(f"{path}: points have different numbers of coordinates,")


@pytest.mark.parametrize("number", ["nan", "inf", "1e300", "3e38", "-1e10"])
@pytest.mark.parametrize("line", ["v 1 2 {}\n", "vt {} 0\n"])
def test_numbers_that_compiled_loops_cannot_take(tmp_path, number, line):
    """Compiled loops check no bounds: a NaN position could be anywhere in memory."""
    text = line.format(number) + "v 1 2 3\nv 3 2 1\nv 5 2 2\nvt 0 0\nf -1/1 -2/1 -3/1\n"
    path = write_square(tmp_path, text if line.startswith("vt") else text.replace("-3/", "1/"))
    assert says(path) == (
        f"{path}: has points or texture places that are not finite, or beyond 1e+09. "
        "Export the mesh again."
    )


def test_a_colour_that_is_none(tmp_path):
    path = write_square(tmp_path, material="newmtl paint\nKd nan 0 0\n")
    assert says(path) == (
        f"{path.with_suffix('.mtl')}: line 2 cannot be understood: 'Kd nan 0 0'. "
        "Export the mesh again."
    )


def test_a_mesh_may_only_name_files_beside_it(tmp_path):
    """For example, not /home/you/picture.png, which would end up in a rendered scene."""
    write_square(tmp_path / "other")
    text = SQUARE.replace("mtllib square.mtl", f"mtllib {tmp_path / 'other' / 'square.mtl'}")
    (mesh,) = read_object(write_square(tmp_path / "mesh", text, "newmtl paint\nKd 0 0 1\n"))
    assert np.ptp(mesh.material.texture.picture, axis=(0, 1)).max() == 0  # its own, not the other
    for way in (tmp_path / "other" / "paint.png", "../other/paint.png"):
        (tmp_path / "mesh" / "paint.png").unlink(missing_ok=True)
        material = MATERIAL.replace("paint.png", str(way))
        path = write_square(tmp_path / "mesh", material=material, texture=False)
        assert says(path).startswith(f"{path}: its texture {way} is missing.")
    path = write_square(tmp_path / "mesh", "mtllib " + 5000 * "a" + SQUARE)
    assert len(read_object(path)) == 1  # too long for a file name: treated as missing


def test_a_mesh_of_nothing(tmp_path):
    tiny = "v 0 0 0\nv 1e-42 0 0\nv 0 1e-42 0\nf 1 2 3\n"
    for text in ("v 1 2 3\nv 1 2 3\nv 1 2 3\nf 1 2 3\n", "# nothing\n", tiny):
        path = write_square(tmp_path, text)
        assert says(path) == (
            f"{path}: has no triangle with an area. Export the mesh again, or take it out."
        )


def test_an_enormous_mesh(tmp_path):
    faces = np.zeros((500_001, 3), np.uint16) + np.array([0, 1, 2], np.uint16)
    path = write_packed(tmp_path / "cup.npz", faces=faces, uv_faces=faces)
    assert says(path) == (
        f"{path}: has 500001 triangles, more than 500000. "
        "Simplify the mesh, or take it out of the folder."
    )
    path = tmp_path / "cup.obj"
    with path.open("wb") as file:
        file.truncate(513 << 20)
    assert says(path) == (
        f"{path}: is larger than 512 MiB. Simplify the mesh, or take it out of the folder."
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"faces": np.array([[0, 1, 3]], np.uint16)},
        {"faces": np.array([[0, 1, 2], [0, 1, 2]], np.uint16)},
        {"vertices": np.zeros((3, 2), np.int16)},
        {"uv": np.zeros(3, np.uint16)},
        {"uv": np.array([["a", "b"]] * 3)},
        {"faces": np.array([[None] * 3])},
    ],
)
def test_packed_arrays_that_do_not_fit(tmp_path, changes):
    path = write_packed(tmp_path / "cup.npz", **changes)
    assert says(path) == (
        f"{path}: is no packed mesh, expected vertices, uv, faces, uv_faces. See docs/rendering.md."
    )


def test_a_file_that_is_no_archive(tmp_path):
    path = tmp_path / "cup.npz"
    path.write_bytes(b"PK\x03\x04 not really")
    assert says(path).startswith(f"{path}: is no packed mesh, expected vertices,")


def test_an_array_that_claims_more_than_it_holds(tmp_path):
    path = write_packed(tmp_path / "cup.npz")
    data = path.read_bytes()
    assert data.count(b"'shape': (1, 3), }  ") == 2
    path.write_bytes(
        data.replace(b"'shape': (1, 3), }" + b" " * 13, b"'shape': (99999999999999, 3), }")
    )
    assert says(path).startswith(f"{path}: is no packed mesh, expected vertices,")


def test_materials_that_are_named_very_often(tmp_path, monkeypatch):
    """They are read once: a small mesh could ask for a large file a million times."""
    path = write_square(tmp_path, 1000 * "mtllib square.mtl\n" + SQUARE)
    reads = []
    monkeypatch.setattr(
        wavefront, "read_small", lambda *asked: reads.append(asked[0].name) or read_small(*asked)
    )
    assert len(wavefront.read_obj(path)) == 1
    assert reads == [path.name, "square.mtl"]
