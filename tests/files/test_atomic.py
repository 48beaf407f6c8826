import json
import os
import signal

import pytest
from kill_at_write import kill_at_write

from oaccdepth.errors import OutputExists, UnwritableOutput
from oaccdepth.files.atomic import (
    prepare_folder,
    remove_leftovers,
    replacing,
    write_bytes,
    write_json,
)


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


def test_others_may_read_what_the_umask_lets_them(tmp_path):
    (tmp_path / "plain").write_bytes(b"x")
    with replacing(tmp_path / "file.bin") as temporary:
        temporary.unlink()
        temporary.touch(mode=0o600)  # as justpfm and safetensors do
    assert (tmp_path / "file.bin").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_temporary_name_keeps_the_ending(tmp_path):
    with replacing(tmp_path / "picture.png") as temporary:
        assert temporary.suffix == ".png"  # some libraries choose the format by it
        assert temporary.parent == tmp_path
        temporary.write_bytes(b"x")


def test_a_place_below_a_file_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("in the way")
    path = tmp_path / "file" / "out.bin"
    with pytest.raises(UnwritableOutput) as caught:
        write_bytes(path, b"abc")
    assert str(caught.value).startswith(f"{path}: cannot be written (")
    assert str(caught.value).endswith("). Choose another place with --output.")


def test_json_keeps_order_and_letters(tmp_path):
    write_json(tmp_path / "a.json", {"z": 1, "a": "ü"})
    text = (tmp_path / "a.json").read_text(encoding="utf-8")
    assert text == '{\n  "z": 1,\n  "a": "ü"\n}\n'
    assert json.loads(text) == {"z": 1, "a": "ü"}


def test_a_folder_is_made(tmp_path):
    prepare_folder(tmp_path / "a" / "b", ["x"], overwrite=False)
    assert (tmp_path / "a" / "b").is_dir()


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
    """What is there is the old file or the new one, whole; the rest is known as a leftover."""
    path, moment, seen = tmp_path / "file.bin", 0, set()
    while True:
        moment += 1
        path.write_bytes(b"old")
        child = os.fork()
        if child == 0:
            kill_at_write(moment)
            write_bytes(path, b"new")
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status == 0:
            break
        assert status == signal.SIGKILL
        assert path.read_bytes() == b"old"  # the rename is the last of the moments
        seen |= {file.read_bytes() for file in tmp_path.glob(".file.part*.bin")}
        remove_leftovers(tmp_path)
        assert [file.name for file in tmp_path.iterdir()] == ["file.bin"]
    assert moment == 4
    assert seen == {b"", b"new"}
    assert path.read_bytes() == b"new"


def test_leftovers_are_removed_at_any_depth(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    for name in (".x.part12.png", "a/b/.run.part7.json", "a/.party", "a/b/my.part1.png"):
        (tmp_path / name).touch()
    remove_leftovers(tmp_path)
    left = sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file())
    assert left == ["a/.party", "a/b/my.part1.png"]
