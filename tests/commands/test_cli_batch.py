"""`oaccdepth batch`: the command with a real, tiny network; what it prints, its exit codes."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import cv2
import lightfield_files as files
import numpy as np
import pytest
from batch_scenes import save_tiny_weights, write_scene


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    return save_tiny_weights(tmp_path_factory.mktemp("weights") / "tiny.safetensors")


@pytest.fixture
def root(tmp_path):
    write_scene(tmp_path / "root" / "training" / "boxes", 0, truth=True)
    write_scene(tmp_path / "root" / "test" / "herbs", 1)
    return tmp_path / "root"


def damage(root):
    (root / "test" / "herbs" / "input_Cam004.png").write_bytes(b"\x89PNG\r\n\x1a\n")


def test_batch(run, root, weights, tmp_path):
    out = tmp_path / "out"
    result = run("batch", root, "-o", out, "--weights", weights, "--format", "npy")
    assert result.exit_code == 0, result.stderr
    lines = result.stderr.splitlines()
    assert lines[0].startswith("[1/2] ") and lines[1].startswith("[2/2] ")
    assert lines[-1] == "2 done, 0 skipped, 0 failed"
    table = [line.split() for line in result.stdout.splitlines()]
    assert table[0] == ["time", "memory", "disparity", "MSE", "BadPix"]
    assert table[1] == ["scene", "format", "grid", "s", "GiB", "px", "x100", "0.07", "%", "status"]
    assert table[2][:3] == ["test/herbs", "hci", "3x3"]
    assert table[3][0] == "training/boxes" and table[3][-1] == "done"
    assert (out / "training" / "boxes" / "disparity.npy").exists()
    with (out / "report.csv").open() as file:
        assert [row["scene"] for row in csv.DictReader(file)] == ["test/herbs", "training/boxes"]

    again = run("batch", root, "-o", out, "--weights", weights, "--format", "npy", "--json")
    assert again.stderr.splitlines()[-1] == "0 done, 2 skipped, 0 failed"
    boxes = json.loads(again.stdout)["scenes"][1]
    assert (boxes["scene"], boxes["status"], boxes["grid"]) == ("training/boxes", "skipped", [3, 3])
    assert boxes["scores"]["badpix_0070"] is not None

    changed = run("batch", root, "-o", out, "--weights", weights, "--iterations", 1)
    assert changed.stderr.splitlines()[-1] == "2 done, 0 skipped, 0 failed"
    assert not (out / "training" / "boxes" / "disparity.npy").exists()


def test_pages_and_their_index(run, root, weights, tmp_path, monkeypatch):
    """`--open` also writes the pages; the index names a scene that failed."""
    opened = []
    monkeypatch.setattr("typer.launch", opened.append)
    damage(root)
    out = tmp_path / "out"
    result = run("batch", root, "-o", out, "--weights", weights, "--open")
    assert result.exit_code == 1
    assert opened == [(out / "index.html").resolve().as_uri()]
    assert result.stderr.splitlines()[-1] == f"All pages: {out / 'index.html'}"
    index = (out / "index.html").read_text(encoding="utf-8")
    assert 'href="training/boxes/view.html"' in index and "MSE x100" in index
    assert "test/herbs" in index and 'href="test/herbs' not in index
    assert (out / "training" / "boxes" / "view.html").is_file()

    again = run("batch", root, "-o", out, "--weights", weights)  # it had no pages: done again
    assert again.exit_code == 1
    assert not (out / "index.html").exists()


def test_a_scene_is_as_estimate_makes_it(run, root, weights, tmp_path):
    run("batch", root, "-o", tmp_path / "out", "--weights", weights)
    scene = root / "test" / "herbs"
    alone = run("estimate", scene, "-o", tmp_path / "alone", "--weights", weights)
    assert alone.exit_code == 0, alone.stderr
    for name in ("disparity.pfm", "disparity.png", "confidence.png"):
        expected = (tmp_path / "alone" / name).read_bytes()
        assert (tmp_path / "out" / "test" / "herbs" / name).read_bytes() == expected


def test_failure(run, root, weights, tmp_path):
    damage(root)
    result = run("batch", root, "-o", tmp_path / "out", "--weights", weights)
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-2].startswith("error: test/herbs: ")
    assert "input_Cam004.png" in result.stderr.splitlines()[-2]
    assert result.stderr.splitlines()[-1] == "1 done, 0 skipped, 1 failed"
    assert "failed" in result.stdout
    quiet = run("batch", root, "-o", tmp_path / "out", "--weights", weights, "-q")
    assert quiet.exit_code == 1
    assert quiet.stdout == ""
    assert len(quiet.stderr.splitlines()) == 1


def test_the_name_of_a_scene_that_failed_is_said_once(run, weights, tmp_path):
    views = files.render((3, 3), (32, 40))[0]
    files.write_picture(tmp_path / "town" / "input_Cam000.png", views[0, 0])
    told = run("batch", tmp_path, "-o", tmp_path / "out", "--weights", weights).stderr
    reason = "found 1 view and no parameters.cfg, expected a square number of views. Pass"
    assert f"[1/1] town: failed: {reason}" in told
    assert f"error: town: {reason}" in told


def test_dry_run(run, root, weights, tmp_path):
    out = tmp_path / "out"
    run("batch", root, "-o", out, "--weights", weights, "--include", "boxes")
    result = run("batch", root, "-o", out, "--weights", weights, "--dry-run")
    assert result.exit_code == 0
    assert result.stdout == "to do  test/herbs\ndone   training/boxes\n"
    assert result.stderr == "2 scenes, 1 to do\n"
    assert not (out / "test").exists()
    result = run("batch", root, "-o", out, "--weights", weights, "--dry-run", "--json")
    assert json.loads(result.stdout)[0] == {"scene": "test/herbs", "done": False}


def test_errors_that_concern_all(run, root, weights, tmp_path):
    out = tmp_path / "out"
    result = run("batch", root, "-o", out, "--weights", weights, "--device", "cuda:9")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: --device cuda:9: not available.")
    result = run("batch", root, "-o", out, "--weights", weights, "--format", "tiff")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: --format tiff: no such format.")
    result = run("batch", root, "-o", out, "--weights", tmp_path / "no.safetensors")
    assert result.exit_code == 1
    assert "no.safetensors" in result.stderr


# The command line; it gets Ctrl-C at its thirtieth access to a file that is being written.
INTERRUPTED = """
import signal, trouble
trouble.heed_signals()
trouble.kill_at_write(30, signal.SIGINT)
from oaccdepth.cli import main
main()
"""


def test_ctrl_c(root, weights, tmp_path, monkeypatch):
    """A real process and a real signal: it ends at once and reports what is done."""
    for index in range(30):
        write_scene(tmp_path / "root" / f"more{index:02d}", index)
    tests = Path(__file__).parents[1]
    monkeypatch.setenv("PYTHONPATH", f"{tests.parent}:{tests}")
    out = tmp_path / "out"
    command = (sys.executable, "-c", INTERRUPTED, "batch", root, "-o", out, "--weights", weights)
    process = subprocess.run([*map(str, command)], capture_output=True, text=True)
    stderr = process.stderr
    assert process.returncode == 130, stderr
    assert stderr.splitlines()[-1].endswith("not processed yet: run it again to continue")
    assert "Traceback" not in stderr
    assert not list(out.rglob("*.part*"))
    report = json.loads((out / "report.json").read_text())
    finished = {scene["scene"] for scene in report["scenes"]}
    written = {path.parent.relative_to(out).as_posix() for path in out.rglob("run.json")}
    assert finished == written
    assert len(finished) + len(report["not_reached"]) == 32


def test_what_was_not_read_is_listed(run, root, weights, tmp_path):
    """A folder of pictures, a mosaic and a raw file: none is a scene, and each is reported."""
    views = files.render((3, 3), (60, 76))[0]
    for number in range(11):
        files.write_picture(root / "holiday" / f"IMG_{number * number}.png", views[0, 0])
    noise = np.random.default_rng(0).integers(0, 255, (360, 456, 3), dtype=np.uint8)
    files.write_picture(root / "single" / "photo.png", noise)
    big = files.render((3, 3), (120, 152))[0]
    files.write_picture(root / "single" / "mosaic.png", files.mosaic(big))
    files.lytro_container(root / "raw.lfp")
    result = run("batch", root, "-o", tmp_path / "out", "--weights", weights)
    assert result.exit_code == 0, result.stderr
    told = [line for line in result.stderr.splitlines() if line.startswith("not read: ")]
    assert [line.split(": ")[1] for line in told] == ["holiday", "raw.lfp", "single/mosaic.png"]
    assert told[2] == (
        "not read: single/mosaic.png: one picture that seems to hold 3 x 3 views. "
        "Run oaccdepth estimate on it."
    )
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert [entry["path"] for entry in report["not_read"]] == [
        "holiday",
        "raw.lfp",
        "single/mosaic.png",
    ]
    planned = run("batch", root, "-o", tmp_path / "out", "--weights", weights, "--dry-run")
    assert "not read: raw.lfp: " in planned.stderr


def test_small_mosaics_and_a_few_views_are_listed_too(run, tmp_path):
    views = files.render((3, 3), (32, 40))[0]
    for number in range(5):
        files.write_picture(tmp_path / "row" / f"view_00_{number:02d}.png", views[0, number % 3])
    picture = files.mosaic(views)
    for number in range(51):
        files.write_picture(tmp_path / "many" / f"s{number}" / "picture.png", picture)
        files.write_picture(tmp_path / "many" / f"s{number}" / "icon.png", views[0, 0])
    told = run("batch", tmp_path, "-o", tmp_path / "out", "--dry-run").stderr.splitlines()
    assert (
        "not read: row: names of 1 x 5 views, too few to be sure. "
        "If they are views, run oaccdepth estimate on it with --views 1x5."
    ) in told
    assert len([line for line in told if "seems to hold 3 x 3 views" in line]) == 50
    assert (
        "not read: .: 1 more single picture was not opened. "
        "If they hold views, run oaccdepth estimate on each."
    ) in told


def test_lenslet_pictures_are_listed_too(run, tmp_path):
    """But not compressed photographs, which change most from block to block."""
    views = files.render((5, 5), (60, 76))[0]
    files.write_picture(tmp_path / "lenses.png", files.lenslet(views))
    photo = np.ascontiguousarray(files.render((3, 3), (240, 320))[0][1, 1][:, :, ::-1])
    cv2.imwrite(str(tmp_path / "photo.jpg"), photo, [cv2.IMWRITE_JPEG_QUALITY, 20])
    told = run("batch", tmp_path, "-o", tmp_path / "out", "--dry-run").stderr.splitlines()
    assert [line for line in told if "not read: " in line] == [
        "not read: lenses.png: one picture that seems to hold 5 x 5 views. "
        "Run oaccdepth estimate on it."
    ]


def test_a_light_field_inside_another_is_listed(run, tmp_path):
    """It is not searched there; masks of the outer one are none."""
    views = files.render((3, 3), (32, 40))[0]
    for u, v, view in files.each(views):
        files.write_picture(tmp_path / "town" / f"view_{u:02d}_{v:02d}.png", view)
        files.write_picture(tmp_path / "town" / "masks" / f"mask_{u:02d}_{v:02d}.png", view)
        files.write_picture(tmp_path / "town" / "night" / f"view_{u:02d}_{v:02d}.png", view)
    told = run("batch", tmp_path, "-o", tmp_path / "out", "--dry-run").stderr.splitlines()
    assert [line for line in told if "not read: " in line] == [
        "not read: town/night: a light field inside another, town. "
        "If it is not a part of that, run oaccdepth estimate on it."
    ]


def test_archives_videos_and_raw_pictures_are_listed(run, tmp_path):
    """Nobody looks into them; several in a folder are one line, and unpacked ones none."""
    names = ["a.ZIP", "clip.mov", "old.zip", "old.tar.gz", "old/note.txt", "note.txt"]
    for name in [*names, "raw/1.dng", "raw/2.NEF", "raw/10.dng", "films/a.mp4", "films/b.mkv"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"of no interest")
    told = run("batch", tmp_path, "-o", tmp_path / "out", "--dry-run").stderr.splitlines()
    assert [line for line in told if "not read: " in line] == [
        "not read: a.ZIP: an archive. Unpack archives first.",
        "not read: clip.mov: a video. If frames are views, save them as view_RR_CC.png.",
        "not read: films: 2 videos, such as a.mp4. "
        "If frames are views, save them as view_RR_CC.png.",
        "not read: raw: 3 raw pictures, such as 1.dng. Convert raw pictures to PNG or TIFF first.",
    ]


def test_folders_with_a_few_pictures_of_one_size_are_listed(run, tmp_path):
    """They may be views; a mosaic explains its folder, and different sizes are no views."""
    views = files.render((3, 3), (120, 152))[0]
    for folder, names in (("pair", "lr"), ("row", "01234"), ("photos", "ab"), ("mosaics", "ab")):
        for number, name in enumerate(names):
            picture = files.mosaic(views) if folder == "mosaics" else views[0, number % 3]
            picture = picture[number:] if folder == "photos" else picture
            files.write_picture(tmp_path / folder / f"{name}.png", picture)
    told = run("batch", tmp_path, "-o", tmp_path / "out", "--dry-run").stderr.splitlines()
    told = [line for line in told if line.startswith("not read: ")]
    assert [line.split(": ")[1] for line in told] == [
        "mosaics/a.png",
        "mosaics/b.png",
        "pair",
        "row",
    ]
    assert told[2:] == [
        "not read: pair: 2 pictures of the same size. If they are views: at least 3 are needed.",
        "not read: row: 5 pictures of the same size, too few to be sure. "
        "If they are numbered views, run oaccdepth estimate on it with --views UxV.",
    ]
