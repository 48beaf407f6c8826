"""What the tests share: a rendered light field of known disparity, and the command line."""

import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from layered import LayeredScene, Plane, Sphere, Surface, bars, cloud_texture, polygon, render
from typer.testing import CliRunner

from oaccdepth import compiling
from oaccdepth.disparity import DisparityMap, Provenance
from oaccdepth.lightfield import Camera
from oaccdepth.writers import results, scenes


@pytest.fixture(scope="session")
def scene() -> LayeredScene:
    """9x9 views of 48x64 px: a slanted wall, a tilted board, a sphere and a bar in front."""
    rng = np.random.default_rng(7)
    textures = [cloud_texture(rng, 128, falloff) for falloff in (1.0, 0.8, 0.9, 1.0)]
    sphere = Sphere(30.0, 18.0, 11.0, 0.2, 0.4)
    surfaces = [
        Surface(Plane(-1.4, 0.006, 0.004), textures[0]),
        Surface(Plane(-0.2, 0.0, 0.01), textures[1], polygon(16.0, 44.0, 9.0, 5, 0.3)),
        Surface(sphere, textures[2], sphere.outline()),
        Surface(Plane(1.5), textures[3], bars(500.0, 3.0, 0.2, 38.0)),
    ]
    camera = Camera(baseline_mm=20.0, focal_mm=50.0, sensor_mm=36.0, focus_mm=600.0)
    return render(surfaces, (9, 9), (48, 64), camera=camera)


@pytest.fixture(scope="session")
def scene_folder(scene: LayeredScene, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as files: a scene of the HCI benchmark. Tests must not change it."""
    folder = tmp_path_factory.mktemp("scenes") / "town"
    scenes.write_light_field(scenes.with_8_bits(scene.light_field), folder, truth=scene.disparity)
    return folder


@pytest.fixture
def copy(scene_folder: Path, tmp_path: Path) -> Path:
    """A copy of the scene that a test may damage."""
    return shutil.copytree(scene_folder, tmp_path / "copy")


@pytest.fixture
def result_folder(scene: LayeredScene, tmp_path: Path) -> Path:
    """A finished result of the scene called town; the scene itself is not next to it."""
    folder = tmp_path / "out" / "town-result"
    made_with = Provenance(
        version="0.1.0", weights="fast", input={"source": "town", "grid": [9, 9]}, notes=("a note",)
    )
    confidence = np.full_like(scene.disparity, 0.6)
    camera = scene.light_field.camera
    results.write(
        DisparityMap(scene.disparity, confidence, camera=camera, made_with=made_with), folder
    )
    return folder


@pytest.fixture(scope="session")
def demo():
    """The demo's scene, smaller; the bundled weights should do well on it."""
    from oaccdepth.rendering.still_life import demo_scene

    return demo_scene((192, 256))


@pytest.fixture(scope="session")
def untrained():
    """A small fast network. Even untrained it works: it starts as a plane sweep."""
    import torch
    from small_networks import FAST

    from oaccdepth.networks.fast import FastNet

    torch.manual_seed(0)
    return FastNet(FAST).eval()


@pytest.fixture(scope="session")
def weights_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Weights of an untrained full-size network."""
    import torch

    from oaccdepth.networks import checkpoint

    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("weights") / "untrained.safetensors"
    checkpoint.save(path, checkpoint.create("fast"), {})
    return path


@pytest.fixture
def run() -> Callable[..., Any]:
    """Run the command line in this process: `run("info", path)`; has exit_code, stdout, stderr."""
    from oaccdepth.cli import app

    def invoke(*arguments: object) -> Any:
        words = [str(argument) for argument in arguments]
        return CliRunner().invoke(app, words, prog_name="oaccdepth", catch_exceptions=False)

    return invoke


@pytest.fixture(scope="session", autouse=True)
def _compile_silently() -> None:
    """Hide the message about compiling; tests/test_compiling.py tests it."""
    logging.disable()
    compiling.tell_that_it_compiles(is_kept=True)
    logging.disable(logging.NOTSET)


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    """Restore the library's log: commands send it to stderr only."""
    logger = logging.getLogger("oaccdepth")
    handlers, level, is_passed_on = logger.handlers[:], logger.level, logger.propagate
    yield
    logger.handlers[:], logger.propagate = handlers, is_passed_on
    logger.setLevel(level)


# Always the same examples, on every machine. No deadline, because the machine may be busy.
settings.register_profile("repeatable", deadline=None, derandomize=True, database=None)
# New examples every time: `pytest --hypothesis-profile exploring`, tests/test_exploration.py.
settings.register_profile("exploring", deadline=None, print_blob=True, max_examples=300)
settings.load_profile("repeatable")
