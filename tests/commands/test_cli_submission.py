"""`oaccdepth submission`: what it prints, and its errors."""

import json
import zipfile

import numpy as np

from oaccdepth.evaluation.submission import SCENES
from oaccdepth.files.pfm import write_pfm


def test_submission(run, tmp_path):
    for scene in SCENES:
        write_pfm(tmp_path / "out" / f"{scene}.pfm", np.zeros((512, 512), dtype=np.float32))
    path = tmp_path / "submission.zip"
    result = run("submission", tmp_path / "out", "-o", path, "--runtime", 2)
    assert (result.exit_code, result.stdout, result.stderr) == (0, f"{path}\n", "")
    assert len(zipfile.ZipFile(path).namelist()) == 24

    result = run(
        "submission", tmp_path / "out", "-o", path, "--runtime", 2, "--overwrite", "--json"
    )
    assert json.loads(result.stdout)["runtimes"]["boxes"] == 2.0


def test_incomplete(run, tmp_path):
    (tmp_path / "out").mkdir()
    result = run("submission", tmp_path / "out", "-o", tmp_path / "s.zip")
    assert result.exit_code == 1
    assert result.stderr.startswith(
        f"error: {tmp_path}/out: 12 of the twelve scenes are missing: backgammon, dots, "
    )
