"""Help pages in a terminal of 80 columns: nothing cut off, and an example that works."""

import pytest
from test_docs import LEAVES, calls, command_of

COMMANDS = [(), ("weights",), *LEAVES]


def page(run, words, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    result = run(*words, "--help")
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_pages_fit_80_columns(run, words, monkeypatch):
    text = page(run, words, monkeypatch)
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "…" not in text and "..." not in text.replace("pass_1, ...", "")
    for sign in ("<bool>", "<path>", "<int", "<float", "<str>", "None"):
        assert sign not in text


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_pages_explain_every_option(run, words, monkeypatch):
    text = page(run, words, monkeypatch)
    flat = " ".join(text.split())
    for parameter in LEAVES[words].params:
        assert " ".join(parameter.help.split()) in flat
        for name in (*parameter.opts, *parameter.secondary_opts):
            assert parameter.param_type_name == "argument" or name in text


@pytest.mark.parametrize("words", [("weights",), *LEAVES], ids=" ".join)
def test_pages_have_an_example_that_can_be_typed(run, words, monkeypatch):
    _, _, rest = page(run, words, monkeypatch).partition("For example:\n")
    examples = list(calls(rest.partition("\n\n")[0]))
    assert examples
    for example in examples:
        command, title, arguments = command_of(example)
        assert tuple(example[: len(words)]) == words
        with command.make_context(title, list(arguments)):
            pass


def test_wrong_usage_shows_the_same_line(run):
    result = run("estimate", "scene")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[0] == "Usage: oaccdepth estimate INPUT -o OUT [OPTIONS]"
    assert result.stderr.splitlines()[-1] == "Error: Missing option '--output' / '-o'."
