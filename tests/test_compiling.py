"""Compiled loops work whether or not the cache can be written."""

import os
import subprocess
import sys
import time
from pathlib import Path

LOOP = """
from oaccdepth.compiling import compiled

@compiled
def double(x):
    return 2 * x

@compiled
def quadruple(x):
    return 2 * double(x)
"""
AS_TEXT = {"capture_output": True, "text": True, "check": True}
TOLD = "first use: compiling (10 to 15 s) ..."


def run(tmp_path, before):
    (tmp_path / "loops.py").write_text(LOOP)
    tests = str(Path(__file__).parents[1])
    paths = os.pathsep.join([tests, str(tmp_path), *sys.path])
    settings = {"PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    program = f"{before}\nimport loops\nprint(loops.double(1) + loops.quadruple(10))\n"
    return subprocess.run(
        [sys.executable, "-B", "-c", program],
        env=os.environ | settings,
        **AS_TEXT,
    )


def test_what_was_compiled_is_kept(tmp_path):
    """One line says that two loops are compiled; the next use prints nothing."""
    first, again = run(tmp_path, ""), run(tmp_path, "")
    assert (first.stdout, first.stderr) == ("42\n", f"{TOLD}\n")
    assert (again.stdout, again.stderr) == ("42\n", "")
    assert list((tmp_path / "cache").rglob("*.nbi"))


def test_a_changed_loop_in_another_file_is_compiled_again(tmp_path):
    """Numba itself would go on with the old version, which it has compiled into the caller."""
    inner = (
        "from oaccdepth.compiling import compiled\n\n@compiled\ndef change(x):\n    return x + {}\n"
    )
    (tmp_path / "inner.py").write_text(inner.format(1))
    outer = LOOP.replace("2 * double(x)", "2 * inner.change(x)").replace(
        "\n", "\nimport inner\n", 1
    )
    paths = os.pathsep.join([str(Path(__file__).parents[1]), str(tmp_path), *sys.path])
    settings = {"PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    (tmp_path / "outer.py").write_text(outer)
    found = []
    for amount in (1, 2):
        (tmp_path / "inner.py").write_text(inner.format(amount))
        program = [sys.executable, "-B", "-c", "import outer\nprint(outer.quadruple(10))"]
        found.append(subprocess.run(program, env=os.environ | settings, **AS_TEXT).stdout)
    assert found == ["22\n", "24\n"]


def test_a_full_disk_does_not_stop_a_loop(tmp_path):
    done = run(tmp_path, "from trouble import fill_disk_at\nfill_disk_at(0)")
    assert (done.stdout, done.stderr) == ("42\n", f"{TOLD}\n")


def test_a_quiet_first_use_says_nothing(tmp_path):
    quiet = (
        "from oaccdepth.commands.shared import configure_logging\nconfigure_logging(True, False)"
    )
    done = run(tmp_path, quiet)
    assert (done.stdout, done.stderr) == ("42\n", "")


def test_nowhere_to_keep_what_was_compiled():
    """A different message, because the next use takes just as long: numba needs a source file."""
    done = subprocess.run(
        [sys.executable, "-c", f"{LOOP}\nprint(double(1) + quadruple(10))"], **AS_TEXT
    )
    line = "no folder for compiled code can be written: compiling (10 to 15 s) ...\n"
    assert (done.stdout, done.stderr) == ("42\n", line)


def test_another_process_compiles_meanwhile(tmp_path):
    """It keeps what it compiled, and does not run if there is nothing left to compile."""
    (tmp_path / "later.py").write_text(
        "import os\nimport time\nfrom pathlib import Path\nimport loops\n\n\n"
        "def use_all():\n    loops.double(1)\n"
        "    Path(__file__).with_suffix('.used').write_text(str(os.getpid()))\n"
        "    time.sleep(600)\n"
    )
    before = (
        "import os\nimport time\nfrom pathlib import Path\nimport loops\n"
        "from oaccdepth import compiling\n"
        "compiling._cores = lambda: 2\nused = Path(loops.__file__).parent / 'later.used'\n"
        "first = not used.exists()\n"
        "with compiling.compiling_meanwhile('later', loops.double):\n"
        "    while first and not used.exists():\n        time.sleep(0.1)\n"
        "child = Path('/proc') / used.read_text()\nprint(first, child.exists())\n"
    )
    first, again = run(tmp_path, before), run(tmp_path, before)
    # only `quadruple` was left to compile; the other process is gone although it would sleep on
    assert (first.stdout, first.stderr) == ("True False\n42\n", f"{TOLD}\n")
    assert (again.stdout, again.stderr) == ("False False\n42\n", "")
    assert len(list((tmp_path / "cache").rglob("loops.double-*.nbi"))) == 1


def test_it_ends_with_a_process_that_is_killed(tmp_path):
    program = (
        "import os, time\nfrom oaccdepth import compiling\n"
        "child = compiling._start('import time; time.sleep(600)')\n"
        "print(child.pid, flush=True)\nos.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    child = int(done.stdout)
    for _ in range(100):
        if not is_running(child):
            return
        time.sleep(0.1)
    raise AssertionError(f"process {child} is still running")


def is_running(process):
    """Whether there is such a process that has not ended: nobody may have asked how it did."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
