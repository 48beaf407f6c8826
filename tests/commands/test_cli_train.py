"""`oaccdepth train` and `export` from the command line."""

from oaccdepth.commands import train


def test_train_says_how_it_goes_and_where_the_weights_are(run, scene_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(train, "EVERY", 2)
    out = tmp_path / "run"
    words = ["--steps", 3, "--batch", 1, "--patch", 16, "--workers", 0]
    result = run("train", scene_folder, "-o", out, *words)
    assert result.exit_code == 0
    assert result.stderr.count("step ") == 1 and "step 2  loss " in result.stderr
    assert "Weights:" in result.stderr
    assert (out / "latest.safetensors").exists()
    again = run("train", scene_folder, "-o", out, *words)
    assert again.exit_code == 1
    assert again.stderr == f"error: {out}: already holds a run. Pass --resume to go on with it.\n"


def test_train_without_a_length(run, scene_folder, tmp_path):
    result = run("train", scene_folder, "-o", tmp_path / "run")
    assert result.exit_code == 1
    assert result.stderr == "error: train: give either --minutes or --steps, to say how long.\n"
    assert not (tmp_path / "run").exists()


def test_export_refuses_to_overwrite(run, tmp_path):
    path = tmp_path / "refinement.onnx"
    path.touch()
    result = run("export", tmp_path)
    assert result.exit_code == 1
    assert result.stderr == f"error: {path}: already exists. Pass --overwrite to replace it.\n"
