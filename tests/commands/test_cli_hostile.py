"""Escape sequences in names never reach the terminal, neither printed nor logged."""

import io
import json
import shutil
import sys

import pytest

from oaccdepth import cli

NASTY = "to\x1b[2J\x9b31mwn\u202e\x07\nforged: all is well"


@pytest.fixture
def nasty(scene_folder, tmp_path):
    folder = tmp_path / "data" / NASTY
    shutil.copytree(scene_folder, folder)
    return folder


def assert_calm(answer):
    text = answer.stdout + answer.stderr
    assert text
    assert all(line.isprintable() for line in text.split("\n")), repr(text)
    assert "\nforged" not in text


def test_errors(run, nasty):
    (nasty / "input_Cam000.png").unlink()
    answer = run("info", nasty)
    assert answer.exit_code == 1
    assert "\\u001b[2J" in answer.stderr
    assert_calm(answer)


def test_values_in_configurations(run, nasty):
    text = (nasty / "parameters.cfg").read_text()
    (nasty / "parameters.cfg").write_text(text.replace("num_cams_x = ", "num_cams_x = \x1b]0;"))
    assert_calm(run("info", nasty))


@pytest.mark.parametrize("words", ["--{}", "-{}", "{}", "info --{}", "info a {}", "weights {}"])
def test_words_of_a_command_line(run, words):
    """`oaccdepth info *` also quotes file names that look like options."""
    answer = run(*words.format("\x1b[2J\u202e\u009b").split())
    assert answer.exit_code == 2
    assert_calm(answer)


def test_info(run, nasty, weights_file):
    for options in ((), ("--json",)):
        answer = run("info", nasty, "--weights", weights_file, *options)
        assert answer.exit_code == 0
        assert_calm(answer)
    assert json.loads(answer.stdout)["source"] == NASTY


def test_batches(run, nasty, weights_file, tmp_path):
    (nasty / "input_Cam000.png").write_bytes(b"broken")
    for options in (("--dry-run",), ("--dry-run", "--json"), ()):
        answer = run(
            "batch", nasty.parent, "-o", tmp_path / "out", "--weights", weights_file, *options
        )
        assert_calm(answer)


def test_conversion(run, nasty, tmp_path):
    answer = run("convert", nasty, tmp_path / f"{NASTY}.npz", "--verbose")
    assert answer.exit_code == 0
    assert_calm(answer)


def test_names_that_are_not_text(run, scene_folder, weights_file, tmp_path):
    """A folder name in another encoding: everything is written and found again."""
    folder = tmp_path / "data" / "to\udcffwn"
    shutil.copytree(scene_folder, folder)
    out = tmp_path / "out"
    answer = run("batch", folder.parent, "-o", out, "--weights", weights_file, "--view")
    assert answer.exit_code == 0
    assert_calm(answer)
    assert json.loads((out / "report.json").read_text())["scenes"][0]["scene"] == folder.name
    assert "to\\udcffwn" in (out / "report.csv").read_text()
    answer = run("view", out / folder.name, "--overwrite")
    assert answer.exit_code == 0 and "no views" not in answer.stderr
    assert_calm(answer)


def test_terminals_that_lack_a_character(scene_folder, tmp_path, monkeypatch):
    """An old console knows 256 characters; the others are shown as codes."""
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, "latin-1"))
    (tmp_path / "größe ✓").symlink_to(scene_folder)
    monkeypatch.setattr(sys, "argv", ["oaccdepth", "info", str(tmp_path / "größe ✓")])
    monkeypatch.setattr(cli, "stop_cleanly", lambda: None)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    sys.stdout.flush()
    assert shown.getvalue().decode("latin-1").splitlines()[0].split(None, 1)[1] == "größe \\u2713"
