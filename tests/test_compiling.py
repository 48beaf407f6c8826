"""Compiled loops work wherever the cache can, or cannot, be kept."""

import os
import subprocess
import sys
from pathlib import Path

LOOP = """
from oaccdepth.compiling import compiled

@compiled
def double(x):
    return 2 * x
"""
AS_TEXT = {"capture_output": True, "text": True, "check": True}
TOLD = "first use: compiling (about 10 s) ..."


def run(tmp_path, before):
    (tmp_path / "loops.py").write_text(LOOP)
    tests = str(Path(__file__).parents[1])
    paths = os.pathsep.join([tests, str(tmp_path), *sys.path])
    settings = {"PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    program = f"{before}\nimport loops\nprint(loops.double(21))\n"
    return subprocess.run(
        [sys.executable, "-B", "-c", program],
        env=os.environ | settings,
        **AS_TEXT,
    )


def test_what_was_compiled_is_kept(tmp_path):
    assert run(tmp_path, "").stdout == "42\n"
    assert list((tmp_path / "cache").rglob("*.nbi"))


def test_a_full_disk_does_not_stop_a_loop(tmp_path):
    done = run(tmp_path, "from trouble import fill_disk_at\nfill_disk_at(0)")
    assert (done.stdout, done.stderr) == ("42\n", f"{TOLD}\n")


def test_the_first_use_says_that_it_compiles(tmp_path):
    """One line, the first time only."""
    settings = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    words = ("--scenes", "1", "--size", "16x16", "--grid", "3x3", "--samples", "1")
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-m", "oaccdepth", "render", "-o", tmp_path / seed, *words],
            env=os.environ | settings,
            **AS_TEXT,
        )
        assert done.stderr.splitlines().count(TOLD) == (seed == "1")


def test_a_quiet_first_use_says_nothing(tmp_path):
    quiet = (
        "from oaccdepth.commands.shared import configure_logging\nconfigure_logging(True, False)"
    )
    done = run(tmp_path, quiet)
    assert (done.stdout, done.stderr) == ("42\n", "")


def test_nowhere_to_keep_what_was_compiled():
    """Another reason, because the next use takes as long: numba keeps nothing without a file."""
    done = subprocess.run([sys.executable, "-c", f"{LOOP}\nprint(double(21))"], **AS_TEXT)
    line = "no folder for compiled code can be written: compiling (about 10 s) ...\n"
    assert (done.stdout, done.stderr) == ("42\n", line)
