"""The Hypothesis tests again, with new examples every time: slow."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
EXPLORED = sorted(
    path
    for path in TESTS.rglob("test_*.py")
    if re.search(r"^from hypothesis import .*given", path.read_text(), re.MULTILINE)
)


def test_there_is_something_to_explore():
    assert len(EXPLORED) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("path", EXPLORED, ids=lambda path: path.stem)
def test_other_examples(path):
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--hypothesis-profile", "exploring"]
    answer = subprocess.run(
        [*command, "-p", "no:cacheprovider", str(path)],
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout[-6000:]  # with the seed and the example
