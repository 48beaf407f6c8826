"""Small scenes and toy networks for the tests of batches."""

import json
import logging
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np

from oaccdepth.batch import find_jobs, job, run_jobs
from oaccdepth.disparity import DisparityMap, Provenance
from oaccdepth.errors import InvalidCheckpoint
from oaccdepth.files.pfm import write_pfm
from oaccdepth.options import BatchOptions

SIZE = 32
MEASURED = ("seconds", "peak_memory_bytes")


def write_scene(folder: Path, seed: int = 0, truth: bool = False, side: int = 3) -> None:
    """A light field of side x side views of noise; ground truth 0.5 everywhere."""
    folder.mkdir(parents=True)
    noise = np.random.default_rng(seed)
    for index in range(side * side):
        view = noise.integers(0, 255, (SIZE, SIZE, 3), dtype=np.uint8)
        assert cv2.imwrite(str(folder / f"input_Cam{index:03d}.png"), view)
    if truth:
        write_pfm(folder / "gt_disp_lowres.pfm", np.full((SIZE, SIZE), 0.5, dtype=np.float32))


def save_tiny_weights(path: Path) -> Path:
    """A real network, untrained and as small as possible."""
    import torch

    from oaccdepth.networks import checkpoint
    from oaccdepth.networks.fast import FastConfig, FastNet

    torch.manual_seed(0)
    config = FastConfig(channels=(2, 2, 2, 2), refine_channels=(2, 2, 2), level_step=0.5)
    checkpoint.save(path, FastNet(config), {})
    return path


def toy_estimate(light_field, options, progress):
    """A quick result that depends on the views."""
    progress("network", 0.5)
    disparity = light_field.centre.mean(axis=-1)
    return DisparityMap(
        disparity,
        np.ones_like(disparity),
        made_with=Provenance(weights="toy", device="cpu", seconds={"network": time.perf_counter()}),
    )


def open_toy(options):
    return toy_estimate


def open_talkative(options):
    """A network that logs a warning and a detail."""
    logger = logging.getLogger("oaccdepth.toy")
    logger.warning("the network is %s", "open")
    logger.info("a detail")
    return toy_estimate


def open_slow(options):
    """A network that takes 0.2 s for a light field."""

    def estimate(light_field, options, progress):
        time.sleep(0.2)
        return toy_estimate(light_field, options, progress)

    return estimate


def open_deadly(options):
    """A network that kills its process on the scene called "deadly"."""

    def estimate(light_field, options, progress):
        if light_field.source == "deadly":
            os.kill(os.getpid(), signal.SIGKILL)
        return toy_estimate(light_field, options, progress)

    return estimate


def open_deadly_after_writing(options):
    """A network that kills its process when "town" is written, before anybody is told."""
    process = job.process

    def process_and_die(source, *arguments, **options):
        process(source, *arguments, **options)
        if source.name == "town":
            os.kill(os.getpid(), signal.SIGKILL)

    job.process = process_and_die
    return toy_estimate


def open_bad_weights(options):
    raise InvalidCheckpoint("toy.safetensors: damaged.")


def without_measured(value):
    if isinstance(value, dict):
        return {k: without_measured(v) for k, v in value.items() if k not in MEASURED}
    return value


def contents(folder: Path) -> dict[str, object]:
    """Every file by name, without the reports and without the measured times in run.json."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.name == "run.json":
            found[name] = without_measured(json.loads(path.read_text()))
        elif path.is_file() and not name.startswith("report."):
            found[name] = path.read_bytes()
    return found


def statuses(summary):
    return {record.scene: record.status for record in summary.records}


def run(root, settings, options=BatchOptions(), **watching):
    """Find scenes and run them; report and on_record as in `run_jobs`."""
    jobs = find_jobs(root, settings.output, options)
    return run_jobs(jobs, replace(settings, redo=options.redo), options, **watching)
