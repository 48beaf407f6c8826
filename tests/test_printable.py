import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oaccdepth.errors import UnreadableFile
from oaccdepth.printable import printable, printable_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Grüße, 日本 🙂", "Grüße, 日本 🙂"),
        ("\x1b[2J", "\\u001b[2J"),
        ("\x9b31m", "\\u009b31m"),
        ("a\nerror: b\r\t\x07", "a\\u000aerror: b\\u000d\\u0009\\u0007"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\udc80", "\\udc80"),
        ("\U000e0001", "\\udb40\\udc01"),
    ],
)
def test_what_is_shown(text, shown):
    assert printable(text) == shown


@given(st.text(st.characters()))
def test_json_stays_the_same_json(text):
    shown = printable_lines(json.dumps([text], indent=2, ensure_ascii=False))
    assert json.loads(shown) == [text]
    assert all(line.isprintable() for line in shown.split("\n"))


def test_errors_are_one_printable_line():
    assert str(UnreadableFile("a\x1b[31m\nb: damaged.")) == "a\\u001b[31m\\u000ab: damaged."
