"""Four small scenes, and settings for a batch of them with a toy network."""

import pytest
from batch_scenes import open_toy, write_scene

from oaccdepth.batch.job import Settings


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "root"
    for index, name in enumerate(["training/boxes", "training/cotton", "test/origami", "town"]):
        write_scene(root / name, index, truth=name == "training/boxes")
    return root


@pytest.fixture
def settings(tmp_path):
    output = tmp_path / "out"
    return Settings(open_network=open_toy, weights_sha256="1" * 64, output=output)
