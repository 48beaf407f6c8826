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


def run(tmp_path, disk):
    (tmp_path / "loops.py").write_text(LOOP)
    tests = str(Path(__file__).parents[1])
    paths = os.pathsep.join([tests, str(tmp_path), *sys.path])
    settings = {"PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    program = f"from trouble import fill_disk_at\n{disk}\nimport loops\nprint(loops.double(21))\n"
    return subprocess.run(
        [sys.executable, "-B", "-c", program],
        capture_output=True,
        text=True,
        env=os.environ | settings,
    )


def test_what_was_compiled_is_kept(tmp_path):
    assert run(tmp_path, "").stdout == "42\n"
    assert list((tmp_path / "cache").rglob("*.nbi"))


def test_a_full_disk_does_not_stop_a_loop(tmp_path):
    done = run(tmp_path, "fill_disk_at(0)")
    assert (done.stdout, done.stderr) == ("42\n", "")
