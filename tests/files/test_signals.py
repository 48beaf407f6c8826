"""Signals that end a program: one exception that is never lost, nor disturbed by another signal."""

import os
import signal
import time
from contextlib import suppress

import pytest
from trouble import run_child, send

from oaccdepth.files.signals import ENDING, heed, stop_cleanly


class Short:
    """Python can only report an exception that is raised while it shuts down."""

    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)


def drop_at_the_end_of_an_object():
    Short()


def drop_in_a_library():
    with suppress(BaseException):
        os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize("drop", [drop_at_the_end_of_an_object, drop_in_a_library])
def test_an_exception_that_is_lost_is_raised_again(drop, capfd):
    def act():
        stop_cleanly()
        try:
            drop()
            while True:
                time.sleep(0.01)
        except KeyboardInterrupt as error:
            raise SystemExit(heed(error)) from error

    assert run_child(act) == 143
    assert capfd.readouterr() == ("", "")


def test_an_error_that_a_library_made_of_it():
    def act():
        stop_cleanly()
        try:
            try:
                os.kill(os.getpid(), signal.SIGHUP)
            except KeyboardInterrupt:
                raise ValueError("damaged") from None
        except ValueError as error:
            raise SystemExit(heed(error)) from error

    assert run_child(act) == 129


def test_no_other_signal_disturbs_what_is_cleaned_up():
    """The end of a session, for example, sends SIGHUP and SIGTERM together."""

    def act():
        stop_cleanly()
        try:
            try:
                send(*ENDING)
            finally:
                for _ in range(100):
                    send(*ENDING)
        except KeyboardInterrupt as error:
            code = heed(error)
            send(*ENDING)
            raise SystemExit(code) from error

    assert run_child(act) - 128 in ENDING


def test_an_error_without_a_signal():
    assert heed(ValueError("damaged")) is None
    assert heed(KeyboardInterrupt()) == 130  # in a program that has not called `stop_cleanly`
