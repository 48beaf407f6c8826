"""tools/fuzz.py: clean cases pass, and all others are noticed."""

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import fuzz
import pytest

TOOLS = Path(__file__).parents[2] / "tools"


def settings(**changed):
    usual = {"cases": 3, "seed": 1, "first": 0, "minutes": 9, "seconds": 300.0, "memory": 1024.0}
    return argparse.Namespace(**{**usual, **changed})


def test_the_command():
    command = [sys.executable, str(TOOLS / "fuzz.py"), "--cases", "400", "--seed", "5"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    first, *_, last = answer.stdout.splitlines()
    assert first == "seed 5"
    assert last.startswith("seed 5: 400 cases, 0 not clean; readings: ")


def grow():
    """Use 300 MiB more than this process, which has run other tests, has ever used."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return b"x" * (max(peak - pages * resource.getpagesize(), 0) + (300 << 20))


FAULTS = {
    "ZeroDivisionError": lambda: 1 // 0,
    "written to stderr": lambda: os.write(2, b"libpng warning"),
    "MiB": grow,
    "more than 0.2 s": lambda: time.sleep(5),
    "ended with 7": lambda: os._exit(7),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_what_is_not_clean_is_seen(tmp_path, monkeypatch, capsys, kind):
    file = tmp_path / "file"
    file.write_bytes(b"content")
    targets = [fuzz.Target("a file", file, FAULTS[kind])]
    monkeypatch.setattr(fuzz, "make_targets", lambda folder: targets)
    args = settings(cases=1, memory=20.0, seconds=0.2 if "0.2" in kind else 300.0)
    summary = fuzz.run_cases(args, tmp_path)
    assert summary.failures == [0]
    assert kind in capsys.readouterr().out
    assert file.read_bytes() == b"content"


def test_a_case_is_the_same_every_time():
    import numpy as np

    first, again, other = (
        fuzz.damage(bytes(range(200)), np.random.default_rng([1, number])) for number in (3, 3, 4)
    )
    assert first == again != other
