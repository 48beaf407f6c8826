"""Batches on Ray: requested resources, and a real cluster of two nodes, one of which is killed."""

import logging
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from batch_scenes import (  # scenes and toy networks
    contents,
    open_bad_weights,
    open_slow,
    open_toy,
    statuses,
    write_scene,
)

from oaccdepth.batch import find_jobs, run_jobs
from oaccdepth.batch.cluster import _refused, choose_resources
from oaccdepth.batch.job import Settings
from oaccdepth.errors import DeviceUnavailable, InvalidCheckpoint, MissingDependency
from oaccdepth.options import BatchOptions

NUM_SCENES = 60  # enough to notice a dead node before everything is done


def test_choose_resources():
    gpus = [{"CPU": 32.0, "GPU": 4.0}, {"CPU": 30.0, "GPU": 4.0}]
    assert choose_resources("auto", gpus) == ({"num_gpus": 1}, 8)
    assert choose_resources("cuda", gpus) == ({"num_gpus": 1}, 8)
    assert choose_resources("cpu", gpus) == ({"num_cpus": 4}, 8 + 7)
    assert choose_resources("auto", [{"CPU": 10.0}]) == ({"num_cpus": 4}, 2)
    # a worker runs on a single machine
    assert choose_resources("auto", [{"CPU": 2.0}, {"CPU": 2.0}]) == ({"num_cpus": 2}, 2)
    assert choose_resources("auto", [{"CPU": 0.0}, {"CPU": 1.0}]) == ({"num_cpus": 1}, 1)
    # an autoscaler may start empty and add nodes on request
    assert choose_resources("cuda", [{}]) == ({"num_gpus": 1}, 1)
    assert choose_resources("cpu", []) == ({"num_cpus": 1}, 1)


def test_without_ray(tmp_path, monkeypatch):
    write_scene(tmp_path / "root" / "boxes")
    monkeypatch.setitem(sys.modules, "ray", None)  # importing it fails, as if it were not installed
    settings = Settings(open_network=open_toy, output=tmp_path / "out")
    jobs = find_jobs(tmp_path / "root", settings.output)
    with pytest.raises(MissingDependency) as error:
        run_jobs(jobs, settings, BatchOptions(ray="auto"))
    assert str(error.value) == (
        'batch --ray needs Ray. Install it with: pip install "oaccdepth[ray]".'
    )


@pytest.fixture
def root(tmp_path):
    for index in range(NUM_SCENES):
        write_scene(tmp_path / "root" / f"scene{index:02d}", index, truth=True)
    return tmp_path / "root"


@pytest.fixture
def settings(tmp_path):
    return Settings(open_network=open_slow, weights_sha256="1" * 64, output=tmp_path / "out")


def open_and_tell(options):
    """Open the slow network and write a file for each process that does so."""
    (Path(os.environ["OPENED_FOLDER"]) / str(os.getpid())).touch()
    return open_slow(options)


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """Folder in which each working process writes a file."""
    (tmp_path / "opened").mkdir()
    monkeypatch.setenv("OPENED_FOLDER", str(tmp_path / "opened"))
    return tmp_path / "opened"


@pytest.fixture
def cluster(monkeypatch, opened):
    """Two nodes of two CPUs each, so one worker per node; separate process trees."""
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    import ray

    # Workers must be able to import this module, too, with its toy networks.
    package = Path(__file__).parents[2]
    monkeypatch.setenv("PYTHONPATH", f"{package}:{Path(__file__).parents[1]}")
    cluster = cluster_utils.Cluster(
        initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False}
    )
    try:
        second = cluster.add_node(num_cpus=2)
        cluster.wait_for_nodes()
        yield cluster, second
    finally:
        ray.shutdown()
        cluster.shutdown()


@pytest.mark.ray
@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_a_node_is_killed(root, settings, opened, cluster, tmp_path, monkeypatch, caplog):
    cluster, second = cluster
    monkeypatch.setattr(logging.getLogger("oaccdepth"), "propagate", True)
    finished = []

    def kill_a_node(record):
        finished.append(record)
        if len(finished) == 1:  # on a busy machine, one may finish before the other has started
            deadline = time.monotonic() + 200
            while len(list(opened.iterdir())) < 2 and time.monotonic() < deadline:
                time.sleep(0.1)
        if len(finished) == 6:  # by now both are working on scenes
            cluster.remove_node(second, allow_graceful=False)

    seen = []
    summary = run_jobs(
        find_jobs(root, settings.output),
        replace(settings, open_network=open_and_tell),
        BatchOptions(ray=cluster.address),
        report=lambda *progress: seen.append(progress),
        on_record=kill_a_node,
    )
    assert seen  # the progress of the workers arrives here
    assert any(message.startswith("a worker died: ") for message in caplog.messages)
    assert set(statuses(summary).values()) <= {"done", "skipped"}, summary.failed
    assert len(summary.records) == NUM_SCENES

    local = replace(settings, output=tmp_path / "local", open_network=open_toy)
    run_jobs(find_jobs(root, local.output), local)
    assert contents(settings.output) == contents(local.output)


@pytest.mark.ray
@pytest.mark.filterwarnings("ignore")
def test_bad_weights_on_a_cluster(root, settings, cluster):
    cluster, _ = cluster
    broken = replace(settings, open_network=open_bad_weights)
    with pytest.raises(InvalidCheckpoint) as error:
        run_jobs(find_jobs(root, settings.output), broken, BatchOptions(ray=cluster.address))
    assert str(error.value) == "toy.safetensors: damaged."


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("127.0.0.1:1", "Connection refused"),
        ("nonsense", "Invalid address format: nonsense"),
    ],
)
def test_nobody_there(root, settings, address, reason):
    pytest.importorskip("ray")
    with pytest.raises(DeviceUnavailable) as error:
        run_jobs(find_jobs(root, settings.output), settings, BatchOptions(ray=address))
    assert str(error.value) == (
        f"--ray {address}: no Ray cluster there ({reason}). Start one with: ray start --head."
    )


def test_a_refused_connection():
    # Ray itself retries for minutes, and only its log says that the token was wrong
    assert str(_refused("head:6379", "Failed to connect")) == (
        "--ray head:6379: a server answered but refused the connection (Failed to connect). "
        "Expected the head of a cluster with the same Ray and the same token (RAY_AUTH_MODE); see "
        "docs/cluster.md."
    )
