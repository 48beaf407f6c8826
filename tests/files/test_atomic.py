import json
import os
import signal

import pytest
from trouble import fill_disk_at, kill_at_write, run_child

from oaccdepth.errors import OutputExists, UnwritableOutput
from oaccdepth.files.atomic import (
    check_file,
    prepare_folder,
    remove_leftovers,
    replacing,
    staged,
    write_bytes,
    write_json,
)
from oaccdepth.files.regular import walk
from oaccdepth.files.signals import ENDING, heed, stop_cleanly


def test_a_file_appears_whole(tmp_path):
    path = tmp_path / "deep" / "file.bin"
    write_bytes(path, b"abc")
    assert path.read_bytes() == b"abc"
    assert [file.name for file in path.parent.iterdir()] == ["file.bin"]


def test_nothing_is_left_of_a_failure(tmp_path):
    path = tmp_path / "file.bin"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), replacing(path) as temporary:
        temporary.write_bytes(b"half")
        raise ZeroDivisionError
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["file.bin"]


def test_new_folders_are_not_left_of_a_failure(tmp_path):
    (tmp_path / "old").mkdir()
    for folder in (tmp_path / "old" / "new" / "newer", tmp_path / "old"):
        with pytest.raises(ZeroDivisionError), replacing(folder / "file.bin"):
            raise ZeroDivisionError
    assert [path.name for path in tmp_path.rglob("*")] == ["old"]


def test_others_may_read_what_the_umask_lets_them(tmp_path):
    (tmp_path / "plain").write_bytes(b"x")
    with replacing(tmp_path / "file.bin") as temporary:
        temporary.unlink()
        temporary.touch(mode=0o600)  # as justpfm and safetensors do
    assert (tmp_path / "file.bin").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_temporary_name_keeps_the_ending(tmp_path):
    with replacing(tmp_path / "picture.png") as temporary:
        assert temporary.suffix == ".png"  # some libraries derive the format from it
        assert temporary.parent == tmp_path
        temporary.write_bytes(b"x")


def test_a_place_below_a_file_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("in the way")
    path = tmp_path / "file" / "out.bin"
    with pytest.raises(UnwritableOutput) as caught:
        write_bytes(path, b"abc")
    assert str(caught.value).startswith(f"{path}: cannot be written (")
    assert str(caught.value).endswith("). Choose another place.")


@pytest.mark.parametrize("linked", [False, True])
def test_what_is_no_file_is_not_replaced(tmp_path, linked):
    """As root, `-o /dev/null` would put a file where the device was."""
    path = pipe = tmp_path / "pipe.png"
    os.mkfifo(pipe)
    if linked:
        path = tmp_path / "link.png"
        path.symlink_to(pipe)
    for write in (lambda: check_file(path, overwrite=True), lambda: write_bytes(path, b"abc")):
        with pytest.raises(UnwritableOutput) as caught:
            write()
        assert str(caught.value) == (
            f"{path}: is a named pipe, expected a file. Choose another name."
        )
    assert pipe.is_fifo() and path.is_symlink() == linked
    assert not list(tmp_path.glob(".*"))


def test_json_keeps_order_and_letters(tmp_path):
    write_json(tmp_path / "a.json", {"z": 1, "a": "ü"})
    text = (tmp_path / "a.json").read_text(encoding="utf-8")
    assert text == '{\n  "z": 1,\n  "a": "ü"\n}\n'
    assert json.loads(text) == {"z": 1, "a": "ü"}


def test_a_folder_that_can_be_made(tmp_path):
    prepare_folder(tmp_path / "a" / "b", ["x"], overwrite=False)
    assert list(tmp_path.iterdir()) == []  # it is created when there is something to put into it


def test_files_that_are_there_are_not_replaced(tmp_path):
    (tmp_path / "b.txt").write_text("1")
    with pytest.raises(OutputExists) as caught:
        prepare_folder(tmp_path, ["a.txt", "b.txt"], overwrite=False)
    assert str(caught.value) == (
        f"{tmp_path}: already holds b.txt. Pass --overwrite to replace, or choose another --output."
    )
    (tmp_path / "a.txt").write_text("1")
    with pytest.raises(OutputExists, match=r"already holds a\.txt and 1 more\. Pass --overwrite"):
        prepare_folder(tmp_path, ["a.txt", "b.txt"], overwrite=False)
    prepare_folder(tmp_path, ["a.txt", "b.txt"], overwrite=True)


def test_other_files_in_the_folder_do_not_matter(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    prepare_folder(tmp_path, ["a.txt"], overwrite=False)


def test_a_file_in_the_folders_place(tmp_path):
    path = tmp_path / "out"
    path.write_text("in the way")
    with pytest.raises(UnwritableOutput) as caught:
        prepare_folder(path, ["a.txt"], overwrite=True)
    assert str(caught.value) == f"{path}: is a file, expected a folder. Choose another --output."


def test_a_folder_below_a_file(tmp_path):
    (tmp_path / "file").write_text("in the way")
    path = tmp_path / "file" / "out"
    with pytest.raises(UnwritableOutput) as caught:
        prepare_folder(path, ["a.txt"], overwrite=False)
    assert str(caught.value) == (
        f"{path}: cannot be created (Not a directory). Choose another --output."
    )


def test_killed_at_every_write(tmp_path):
    """There is the complete old or new file; anything else is recognised as a leftover."""
    path, seen = tmp_path / "file.bin", set()
    path.write_bytes(b"old")

    def write(moment):
        kill_at_write(moment)
        write_bytes(path, b"new")

    moment = 1
    while (status := run_child(write, moment)) != 0:
        assert status == -signal.SIGKILL
        assert path.read_bytes() == b"old"  # the rename comes last
        seen |= {file.read_bytes() for file in tmp_path.glob(".file.part*.bin")}
        remove_leftovers(tmp_path)
        assert [file.name for file in tmp_path.iterdir()] == ["file.bin"]
        moment += 1
    assert moment == 4
    assert seen == {b"", b"new"}
    assert path.read_bytes() == b"new"


def write_three(folder):
    with staged(folder, "last") as stage:
        for name in ("last", "a", "deep/b"):
            write_bytes(stage / name, b"new")


def names_in(folder):
    return sorted(path.relative_to(folder).as_posix() for path in walk(folder) if path.is_file())


@pytest.mark.parametrize("numbers", [(signal.SIGKILL,), *zip(ENDING, strict=True), ENDING])
def test_a_new_folder_appears_whole(tmp_path, numbers):
    """Killed or stopped at any write, the folder is complete or absent."""
    folder, moment = tmp_path / "above" / "folder", 1

    def write(moment):
        stop_cleanly()
        kill_at_write(moment, *numbers)
        try:
            write_three(folder)
        except KeyboardInterrupt as error:
            raise SystemExit(heed(error)) from error

    while (status := run_child(write, moment)) != 0:
        assert status == -signal.SIGKILL or status - 128 in numbers
        if signal.SIGKILL not in numbers and folder.exists():  # it came while the folder was moved
            break
        assert not folder.exists()
        assert names_in(tmp_path) == [] or signal.SIGKILL in numbers
        remove_leftovers(tmp_path)
        moment += 1
    assert moment > 9
    assert names_in(tmp_path) == [f"above/folder/{name}" for name in ("a", "deep/b", "last")]


def test_the_last_file_of_a_folder_is_the_last_to_be_moved(tmp_path):
    """In a folder with other files: once `last` is there, everything is there."""
    (tmp_path / "mine").write_bytes(b"1")
    moment = 1

    def write(moment):
        kill_at_write(moment)
        write_three(tmp_path)

    while run_child(write, moment) != 0:
        remove_leftovers(tmp_path)
        there = names_in(tmp_path)
        assert "mine" in there
        assert "last" not in there or there == ["a", "deep/b", "last", "mine"]
        for name in {*there} - {"mine"}:
            (tmp_path / name).unlink()
        moment += 1
    assert moment > 12
    assert names_in(tmp_path) == ["a", "deep/b", "last", "mine"]


def test_a_full_disk_leaves_nothing(tmp_path):
    folder = tmp_path / "above" / "folder"

    def write():
        fill_disk_at(2)
        with pytest.raises(UnwritableOutput) as caught:
            write_three(folder)
        assert str(caught.value) == (
            f"{folder}/last: cannot be written (File too large). Choose another place."
        )

    assert run_child(write) == 0
    assert list(tmp_path.iterdir()) == []


def test_what_is_replaced_stays_until_all_is_written(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    with (
        pytest.raises(ZeroDivisionError),
        staged(tmp_path, "last", (tmp_path / "a").unlink) as stage,
    ):
        write_bytes(stage / "last", b"new")
        raise ZeroDivisionError
    assert names_in(tmp_path) == ["a"]
    with staged(tmp_path, "last", (tmp_path / "a").unlink) as stage:
        write_bytes(stage / "last", b"new")
    assert names_in(tmp_path) == ["last"]


def test_leftovers_are_removed_at_any_depth(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    for name in (".x.part12.png", "a/b/.run.part7.json", "a/.party", "a/b/my.part1.png"):
        (tmp_path / name).touch()
    remove_leftovers(tmp_path)
    left = sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file())
    assert left == ["a/.party", "a/b/my.part1.png"]


@pytest.mark.parametrize("name", ["a" * 250, "ä" * 127, f"{'b' * 250}.npz"])
def test_names_as_long_as_the_system_allows(tmp_path, name):
    """There is no room for a longer temporary name."""
    write_bytes(tmp_path / "files" / name, b"content")
    with staged(tmp_path / "folders" / name, last="run.json") as stage:
        (stage / "run.json").touch()
    assert os.listdir(tmp_path / "files") == os.listdir(tmp_path / "folders") == [name]


def test_names_that_are_too_long(tmp_path):
    path = tmp_path / ("a" * 256)
    with pytest.raises(UnwritableOutput, match="File name too long"):
        write_bytes(path, b"")
    with pytest.raises(UnwritableOutput, match="File name too long"), staged(path, "a") as stage:
        (stage / "a").touch()
    assert not list(tmp_path.iterdir())
