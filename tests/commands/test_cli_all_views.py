"""`--use-views all`: in every command that estimates, every view of a large grid votes."""

import pytest

from oaccdepth.estimation import blocks


@pytest.mark.parametrize("command", ["estimate", "masks", "view", "figure", "info"])
def test_all_views_vote(run, scene_folder, weights_file, tmp_path, monkeypatch, command):
    def chosen(steps):
        raise AssertionError("only some of the views vote")

    monkeypatch.setattr(blocks, "voters", chosen)
    names = {"estimate": "out", "masks": "out", "view": "page.html", "figure": "figure.png"}
    output = ["-o", tmp_path / names[command]] if command in names else []
    arguments = [*output, "--use-views", "all", "--weights", weights_file]
    done = run(command, scene_folder, *arguments)
    assert done.exit_code == 0, done.stderr
