"""Rendered scenes -> folders in the layout of the HCI benchmark, each complete or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from oaccdepth.errors import InvalidOption
from oaccdepth.files.atomic import prepare_folder, remove_leftovers
from oaccdepth.options import RenderOptions
from oaccdepth.progress import ReportProgress
from oaccdepth.readers.parameters import FILE_NAME
from oaccdepth.rendering import scenes, stress
from oaccdepth.rendering.objects import Object, read_object
from oaccdepth.rendering.renderer import Scene
from oaccdepth.rendering.rig import camera_places
from oaccdepth.writers.scenes import MOST_VIEWS, write_light_field

OBJECTS_PER_SCENE = 8

Build = Callable[[], tuple[Scene, scenes.Finish]]


@dataclass(frozen=True)
class Done:
    """Folders of a data set."""

    rendered: list[Path]
    skipped: list[Path]  # were there already


def render_dataset(
    folder: Path, options: RenderOptions, objects: Sequence[Path], progress: ReportProgress
) -> Done:
    """Render the scenes of `seed`, `seed` + 1, ...; existing scenes are skipped."""

    def build(seed: int) -> tuple[Scene, scenes.Finish]:
        chosen = choose_objects(seed, objects)
        return scenes.random_scene(seed, chosen, options.size, options.disparity_range)

    seeds = range(options.seed, options.seed + options.scenes)
    builders = {f"scene_{seed:05d}": partial(build, seed) for seed in seeds}
    return _render_all(folder, builders, options, progress)


def render_stress(folder: Path, options: RenderOptions, progress: ReportProgress) -> Done:
    """Render the stress scenes; existing scenes are skipped."""
    builders = {name: partial(stress.stress_scene, name) for name in stress.SCENES}
    return _render_all(folder, builders, options, progress)


def _render_all(
    folder: Path,
    builders: Mapping[str, Build],
    options: RenderOptions,
    progress: ReportProgress,
) -> Done:
    rows, columns = options.grid
    if rows * columns > MOST_VIEWS:
        raise InvalidOption(
            f"--grid {rows}x{columns}: {rows * columns} views, at most {MOST_VIEWS} fit the names "
            "of a scene. Use fewer cameras."
        )
    prepare_folder(folder, [], overwrite=False)
    remove_leftovers(folder)
    done = Done([], [])
    for number, (name, build) in enumerate(builders.items()):
        path = folder / name
        if (path / FILE_NAME).exists():
            done.skipped.append(path)
            continue
        progress(name, number / len(builders))

        def report(_: str, fraction: float, name: str = name, number: int = number) -> None:
            progress(name, (number + fraction) / len(builders))

        _render(build, path, options, report)
        done.rendered.append(path)
    return done


def _render(build: Build, path: Path, options: RenderOptions, progress: ReportProgress) -> None:
    scene, finish = build()
    places = camera_places(options.grid)
    rendered = scenes.render(scene, finish, places, samples=options.samples, progress=progress)
    write_light_field(rendered.light_field, path, to="hci", truth=rendered.disparity)


def choose_objects(seed: int, objects: Sequence[Path]) -> list[Object]:
    """Read the few objects that a scene uses."""
    rng = np.random.default_rng([seed, 7])
    number = min(OBJECTS_PER_SCENE, len(objects))
    return [read_object(objects[k]) for k in rng.choice(len(objects), number, replace=False)]
