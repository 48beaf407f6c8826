"""Paths that all commands treat the same way: a missing input, an existing output."""

import errno
import os

import pytest
from rich.console import Console

from oaccdepth import readers


@pytest.mark.parametrize(
    "words",
    [
        "estimate {} -o {}/out",
        "masks {} -o {}/out",
        "info {}",
        "view {} -o {}/out.html",
        "figure {} -o {}/out.png",
        "refocus {} -o {}/out.png --disparity 1",
        "convert {} {}/out",
    ],
)
def test_a_missing_input(run, tmp_path, words):
    path = tmp_path / "nothing"
    result = run(*words.format(path, tmp_path).split())
    message = f"error: {path}: no such file or folder. Check the path.\n"
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", message)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", ["info .", "estimate . -o out", "batch . -o out"])
def test_a_current_folder_that_is_gone(run, tmp_path, monkeypatch, words):
    """Torch aborted the program there, and other libraries raised a traceback."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    done = run(*words.split())
    message = "error: the current folder no longer exists. Change to another one.\n"
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", message)


def a_library_that_does_not_fit():
    """As in llvmlite: only the previous error gives the reason."""
    error = OSError("Could not find/load shared object file 'libllvmlite.so'")
    error.__context__ = OSError("libllvmlite.so: failed to map segment from shared object")
    return error


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
        RuntimeError("Failed to allocate 99 bytes (Insufficient memory)"),
        RuntimeError("could not create a primitive"),
        a_library_that_does_not_fit(),
    ],
)
def test_too_little_memory(run, scene_folder, monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr(readers, "read", fail)
    done = run("info", scene_folder)
    message = "not enough memory. Close other programs, or give fewer or smaller views."
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", f"error: {message}\n")


def test_a_full_disk_behind_stdout(run, monkeypatch):
    """`oaccdepth formats > file`: rich writes the table and raises the system's error."""

    def fail(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Console, "print", fail)
    done = run("formats")
    message = "error: the output: No space left on device. Free some space.\n"
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", message)


def test_our_own_mistakes_are_not_hidden(run, scene_folder, monkeypatch):
    monkeypatch.setattr(readers, "read", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run("info", scene_folder)


@pytest.mark.parametrize(
    "words",
    [
        ("view", "{scene}", "-o", "{tmp}/out.html"),
        ("figure", "{scene}", "-o", "{tmp}/out.gif", "--animate", "parallax"),
        ("refocus", "{scene}", "-o", "{tmp}/out.png", "--disparity", "1"),
        ("convert", "{scene}", "{tmp}/out.h5"),
    ],
    ids=lambda words: words[0],
)
def test_an_existing_file_is_kept(run, scene_folder, weights_file, tmp_path, words):
    words = [word.format(scene=scene_folder, tmp=tmp_path) for word in words]
    more = ["--weights", weights_file] if words[0] == "view" else []
    output = next(tmp_path / word for word in words if word.startswith(f"{tmp_path}/out"))
    output.write_text("mine")
    done = run(*words, *more)
    message = f"error: {output}: already exists. Pass --overwrite to replace it.\n"
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", message)  # and nothing was read
    assert output.read_text() == "mine"
    assert run(*words, *more, "--overwrite", "--quiet").exit_code == 0
    assert output.stat().st_size > 1000


@pytest.mark.parametrize(
    ("command", "held"),
    [("estimate", "confidence.png and 3 more"), ("masks", "contact_sheet.png and 84 more")],
)
def test_an_existing_folder_is_kept(run, scene_folder, weights_file, tmp_path, command, held):
    words = [command, scene_folder, "-o", tmp_path / "out", "--weights", weights_file, "-q"]
    assert run(*words).exit_code == 0
    before = {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    again = run(*words)
    assert (again.exit_code, again.stderr) == (
        1,
        f"error: {tmp_path / 'out'}: already holds {held}. "
        "Pass --overwrite to replace, or choose another --output.\n",
    )
    assert {path: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    assert run(*words, "--overwrite").exit_code == 0
