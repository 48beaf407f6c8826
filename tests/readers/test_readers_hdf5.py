"""HDF5 files made to crash the library, to fill the memory, or to reach other files."""

import os
import re
import resource
import struct

import h5py
import lightfield_files as files
import numpy as np
import pytest
from trouble import run_child

from oaccdepth import readers
from oaccdepth.errors import UnreadableFile
from oaccdepth.lightfield import Camera, LightField
from oaccdepth.writers.scenes import write_light_field

MASK = 0xFFFFFFFF  # 32 bits
VIEWS, TRUTH = files.render((3, 3), (12, 16))
OURS = LightField(
    VIEWS, np.eye(3, dtype=bool), camera=Camera(1.0, 2.0, 3.0, 4.0), disparity_range=(-1.0, 1.0)
)


def test_hdf5_links_that_multiply(tmp_path):
    """200 names of one group of 200 names are 40,000; a small file could name a billion."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["LF"] = VIEWS
        group = file.create_group("group")
        for number in range(200):
            group[f"a{number}"] = file["LF"]
            file[f"b{number}"] = group
    with pytest.raises(UnreadableFile, match="holds more than 10000 arrays"):
        readers.read(tmp_path / "a.h5")


@pytest.mark.parametrize("filters", [("set_deflate", "set_deflate"), ("set_scaleoffset",)])
def test_unusual_filters_of_hdf5(tmp_path, filters):
    """Packed three times, 236 bytes unpack to 2 GB."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        made.set_chunk(VIEWS.shape)
        for name in filters:
            getattr(made, name)(*((9,) if name == "set_deflate" else (h5py.h5z.SO_INT, 0)))
        space = h5py.h5s.create_simple(VIEWS.shape)
        h5py.h5d.create(file.id, b"LF", h5py.h5t.NATIVE_UINT8, space, made)
        file["LF"][...] = VIEWS
    with pytest.raises(UnreadableFile) as caught:
        readers.read(tmp_path / "a.h5")
    assert str(caught.value) == (
        f"{tmp_path}/a.h5: LF is compressed in a way that is not supported. "
        "Save it again, with gzip or lzf."
    )


@pytest.mark.parametrize("compression", ["gzip", "lzf"])
def test_usual_filters_of_hdf5(tmp_path, compression):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset(
            "LF", data=VIEWS, compression=compression, shuffle=True, fletcher32=True
        )
    assert np.array_equal(readers.read(tmp_path / "a.h5").views, VIEWS)


def refused_in_a_child(path):
    """Whether a file is refused, in a process of its own, which may crash."""

    def act():
        with pytest.raises(UnreadableFile, match="damaged or not an HDF5 file"):
            readers.read(path)

    return run_child(act) == 0


def crowd(group, count, target):
    for number in range(count):
        group[f"{number:05d}"] = target


@pytest.mark.parametrize("userblock", [0, 512])
def test_a_tree_of_names_that_leads_back_to_itself(tmp_path, userblock):
    """HDF5 follows it until it crashes, so the test runs in its own process."""
    path, crowded = tmp_path / "a.h5", tmp_path / "crowded.h5"
    with h5py.File(path, "w", libver="earliest", userblock_size=userblock) as file:
        file["LF"] = VIEWS
    data = bytearray(path.read_bytes())
    node = data.index(b"TREE\0\0")
    data[node + 5] = 1  # its children are nodes
    struct.pack_into("<Q", data, node + 8 + 3 * 8, node - userblock)  # the first one is itself
    path.write_bytes(data)
    assert refused_in_a_child(path)
    with h5py.File(crowded, "w", libver="earliest", userblock_size=userblock) as file:
        file["LF"] = VIEWS
        for number in range(300):
            file[f"{number}"] = 0  # so many that nodes have child nodes
    assert b"TREE\0\1" in crowded.read_bytes()
    assert np.array_equal(readers.read(crowded).views, VIEWS)


def test_a_tree_of_names_whose_branches_meet(tmp_path):
    """Ten levels of such nodes are a tree of a billion names, in a small file."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver="earliest") as file:
        file["LF"] = VIEWS
        crowd(file, 300, file["LF"])
    assert np.array_equal(readers.read(path).views, VIEWS)
    data = bytearray(path.read_bytes())
    node = data.index(b"TREE\0\1")
    assert struct.unpack_from("<H", data, node + 6)[0] > 1
    first, step = node + 8 + 3 * 8, 16
    data[first + step : first + step + 8] = data[first : first + 8]
    path.write_bytes(data)
    assert refused_in_a_child(path)


def write_crowded(path, **counts):
    """Groups with so many names, in the new format, which also keeps the order of their making."""
    with h5py.File(path, "w", libver="latest") as file:
        file["LF"] = VIEWS
        for name, count in counts.items():
            crowd(file.create_group(name, track_order=True), count, file["LF"])
    assert np.array_equal(readers.read(path).views, VIEWS)


def copy_within(path, source, target, count):
    data = bytearray(path.read_bytes())
    data[target : target + count] = data[source : source + count]
    path.write_bytes(data)


def test_more_names_than_announced(tmp_path):
    """HDF5 makes room for as many as announced."""
    path = tmp_path / "a.h5"
    write_crowded(path, a=2000, b=1000)
    data = path.read_bytes()
    headers = [found.start() for found in re.finditer(rb"BTHD\x00\x06", data)]
    more, fewer = (struct.unpack_from("<Q", data, header + 16)[0] for header in headers)
    assert data[more : more + 4] == data[fewer : fewer + 4] == b"BTIN"
    copy_within(path, more, fewer, 512)
    assert refused_in_a_child(path)


def test_a_tree_of_something_else(tmp_path):
    """The names by age, where those by name are expected."""
    path = tmp_path / "a.h5"
    write_crowded(path, a=100)
    by_name, by_age = (path.read_bytes().index(b"BTHD\0" + kind) for kind in (b"\5", b"\6"))
    copy_within(path, by_age, by_name, 38)
    assert refused_in_a_child(path)


def test_a_list_of_too_few_chunks(tmp_path):
    """The array claims many more; HDF5 would look for them beyond the end of the list."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver="latest") as file:
        chunks = (1, 1, *VIEWS.shape[2:])
        file.create_dataset("LF", data=VIEWS, chunks=chunks, compression="gzip")
    assert np.array_equal(readers.read(path).views, VIEWS)
    data = bytearray(path.read_bytes())
    largest = data.index(struct.pack("<5Q", *VIEWS.shape) * 2) + 5 * 8
    header = data.rindex(b"OHDR", 0, largest)
    summed = next(
        at for at in range(largest, len(data)) if checksum(data[header:at]) == word(data, at)
    )
    struct.pack_into("<2Q", data, largest, 3, 1 << 40)
    struct.pack_into("<I", data, summed, checksum(data[header:summed]))
    path.write_bytes(data)
    assert refused_in_a_child(path)


def word(data, at):
    return int.from_bytes(data[at : at + 4], "little")


def checksum(data):
    """Jenkins' lookup3, which HDF5 uses in its new format."""
    a = b = c = 0xDEADBEEF + len(data)
    turn = lambda x, by: (x << by | x >> 32 - by) & MASK  # noqa: E731
    for at in range(0, len(data), 12):
        a, b, c = ((x + word(data, at + 4 * i)) & MASK for i, x in enumerate((a, b, c)))
        if at + 12 < len(data):
            for by in (4, 6, 8, 16, 19, 4):
                a = (a - c & MASK) ^ turn(c, by)
                a, b, c = b, c + b & MASK, a
    for by in (14, 11, 25, 16, 4, 14, 24):
        c = (c ^ b) - turn(b, by) & MASK
        a, b, c = b, c, a
    return b


def test_a_heap_of_texts_that_is_damaged(tmp_path):
    """HDF5 would read it for ever. Files of version 0.1.0 have such a text, and are still ours."""
    path = tmp_path / "a.h5"
    write_light_field(OURS, path)
    assert b"GCOL" not in path.read_bytes()
    with h5py.File(path, "a") as file:
        file.attrs["written_by"] = "oaccdepth"
    assert readers.read(path).camera == OURS.camera
    data = bytearray(path.read_bytes())
    data[data.index(b"GCOL") + 16 + 8] = 2  # bytes of the text
    path.write_bytes(data)

    def act():
        resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
        assert readers.read(path).camera == OURS.camera

    assert run_child(act) == 0


def test_a_tree_of_chunks_that_leads_back_to_itself(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver="earliest") as file:
        file.create_dataset("LF", data=VIEWS, chunks=(1, 1, *VIEWS.shape[2:]), compression="gzip")
    data = bytearray(path.read_bytes())
    node = data.index(b"TREE\1\0")
    data[node + 5] = 1
    key_bytes = 8 + 8 * 6
    struct.pack_into("<Q", data, node + 8 + 2 * 8 + key_bytes, node)
    path.write_bytes(data)
    assert refused_in_a_child(path)


@pytest.mark.parametrize("name", ["LF", "valid", "disp_lowres"])
def test_arrays_of_our_hdf5_files_are_checked(tmp_path, name):
    path = tmp_path / "a.h5"
    write_light_field(OURS, path, truth=TRUTH)
    with h5py.File(path, "a") as file:
        del file[name]
        shape = (3, 3, 1 << 15, 1 << 15) if name != "disp_lowres" else (1 << 15, 1 << 17)
        file.create_dataset(name, shape, "u1", chunks=True, compression="gzip")
    with pytest.raises(UnreadableFile, match=f"{name} claims [0-9]+ bytes and holds [0-9]+"):
        readers.read(path)
        readers.read_ground_truth(path)


def test_a_small_array_in_a_huge_chunk(small_budget, tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        shape = (3, 3, 12, 16, 3)
        data = file.create_dataset(
            "LF", shape, "u1", maxshape=(None,) * 5, chunks=(3, 3, 1 << 10, 1 << 11, 3),
            compression="gzip",
        )  # fmt: skip
        data[:] = VIEWS
    with pytest.raises(UnreadableFile, match="LF claims 56623104 bytes and holds"):
        readers.read(tmp_path / "a.h5")


# Other files.


def test_hdf5_links_to_other_files_are_not_followed(tmp_path, soon):
    write_light_field(OURS, tmp_path / "other.h5")
    os.mkfifo(tmp_path / "pipe.h5")
    for number, name in enumerate(("other.h5", "pipe.h5", "nowhere.h5")):
        path = tmp_path / f"{number}.h5"
        with h5py.File(path, "w") as file:
            file["LF"] = h5py.ExternalLink(name, "/LF")
        with pytest.raises(UnreadableFile) as caught:
            readers.read(path)
        assert str(caught.value) == (
            f"{path}: LF lies in another file ({name}), which is not opened. "
            "Copy the array into this file."
        )


def test_hdf5_storage_in_other_files_is_not_read(tmp_path):
    (tmp_path / "secret").write_bytes(bytes(VIEWS.size))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("LF", VIEWS.shape, "u1", external=[("secret", 0, VIEWS.size)])
    with h5py.File(tmp_path / "b.h5", "w") as file:
        layout = h5py.VirtualLayout(VIEWS.shape, "u1")
        layout[:] = h5py.VirtualSource(tmp_path / "c.h5", "LF", VIEWS.shape)
        file.create_virtual_dataset("LF", layout)
    for name in ("a", "b"):
        with pytest.raises(UnreadableFile, match="LF lies in another file"):
            readers.read(tmp_path / f"{name}.h5")


def test_hdf5_links_within_a_file(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["data/LF"] = VIEWS
        file["LF"] = h5py.SoftLink("/data/LF")
        file["gone"] = h5py.SoftLink("/nowhere")
        file["other"] = h5py.SoftLink("/outside/LF")
    assert np.array_equal(readers.read(tmp_path / "a.h5").views, VIEWS)
