"""What tests of readers share."""

import signal

import lightfield_files as files
import pytest

from oaccdepth.files import limits
from oaccdepth.files.limits import FREE_BYTES


@pytest.fixture(scope="module")
def views():
    """Small views, 3x3, of a rendered scene."""
    return files.render((3, 3), (20, 28))[0]


@pytest.fixture
def soon():
    """A test that would wait for ever fails instead."""

    def fail(*_):
        raise AssertionError("it hangs")

    previous = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, 300)  # the machine may be busy
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, previous)


@pytest.fixture
def small_budget(monkeypatch):
    """A tenth of the real budget, so that the tests are quick."""
    monkeypatch.setattr(limits, "FREE_BYTES", FREE_BYTES // 10)
