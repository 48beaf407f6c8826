"""`oaccdepth formats`: every reader, every refusal, every format that is written."""

import json
from pathlib import Path

from oaccdepth import readers
from oaccdepth.writers.scenes import FORMATS

DOCS = Path(__file__).parents[2] / "docs" / "formats.md"


def test_the_table_names_everything(run):
    result = run("formats")
    assert (result.exit_code, result.stderr) == (0, "")
    rows = [line.split()[:2] for line in result.stdout.splitlines()]
    for reader in readers.READERS:
        assert ["read", reader.NAME] in rows
    for reader in readers.REFUSED:
        assert ["refused", reader.NAME] in rows
    for name in FORMATS:
        assert ["written", name] in rows


def test_the_table_for_machines(run):
    facts = json.loads(run("formats", "--json").stdout)
    assert [row["format"] for row in facts["read"]] == [reader.NAME for reader in readers.READERS]
    assert [row["format"] for row in facts["refused"]] == ["lytro-raw", "quilt"]
    assert [row["format"] for row in facts["written"]] == list(FORMATS)
    assert all(row["recognised_by"] for row in facts["read"])


def test_every_format_is_documented():
    text = DOCS.read_text(encoding="utf-8")
    for reader in (*readers.READERS, *readers.REFUSED):
        assert f"`{reader.NAME}`" in text
    for name in FORMATS:
        assert f"`{name}`" in text


def test_readers_offer_what_they_must():
    for reader in readers.READERS:
        assert reader.NAME and reader.SIGN and reader.__doc__
        assert isinstance(reader.EXTENSIONS, tuple)
        assert callable(reader.detect) and callable(reader.open_grid)
