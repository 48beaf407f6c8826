"""Workers on a Ray cluster, each a pipeline with a GPU or a few CPUs.

Every machine needs oaccdepth, and must reach ROOT and OUT under the same path.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from concurrent.futures import Future
from dataclasses import replace
from importlib import import_module
from typing import Any

from oaccdepth.batch.crew import IN_FLIGHT, PATIENCE_SECONDS, Crew, Worker, WorkerDied
from oaccdepth.batch.job import Job, Pipeline, Record, Report, Settings
from oaccdepth.errors import DeviceUnavailable, MissingDependency, OaccDepthError

KNOCK_SECONDS = 10
CPUS_PER_WORKER = 4  # without a GPU; more hardly make the network faster


def make_ray_crew(settings: Settings, address: str, jobs: int | None, report: Report) -> Crew:
    """Start workers on the cluster at `address` ("auto": this machine's; "local": a new one)."""
    ray = _connect(address)
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    needs, possible = choose_resources(settings.estimating.device, nodes)
    if needs.get("num_gpus"):  # each worker sees only its own GPU
        settings = replace(settings, estimating=replace(settings.estimating, device="cuda"))

    def hire(place: int) -> Worker:
        return RayWorker(settings, needs, report)

    return Crew(hire, jobs or possible)


def choose_resources(device: str, nodes: list[dict[str, float]]) -> tuple[dict[str, int], int]:
    """Choose the resources of a worker; return them and how many workers fit on the machines."""
    num_gpus = sum(int(node.get("GPU", 0)) for node in nodes)
    if device.startswith("cuda") or (device == "auto" and num_gpus):
        return {"num_gpus": 1}, max(1, num_gpus)
    cpus = [int(node.get("CPU", 0)) for node in nodes]
    needed = max(1, min(CPUS_PER_WORKER, max(cpus, default=1)))  # a worker runs on one machine
    return {"num_cpus": needed}, max(1, sum(count // needed for count in cpus))


def _connect(address: str) -> Any:
    try:
        ray = import_module("ray")
    except ImportError as error:
        raise MissingDependency(
            'batch --ray needs Ray. Install it with: pip install "oaccdepth[ray]".'
        ) from error
    if ray.is_initialized():
        return ray
    is_there = _knock(address)
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # Ray's future default
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        reason = str(error).splitlines()[0].partition(". ")[0]  # the rest is about Ray's options
        raise _refused(address, reason) if is_there else _no_cluster(address, reason) from error
    return ray


def _knock(address: str) -> bool:
    """Check quickly whether a server answers; Ray itself would keep trying for minutes."""
    host, _, port = address.rpartition("/")[2].rpartition(":")  # also ray://HOST:PORT
    if not port.isdecimal():  # auto, local, or another name that Ray knows
        return False
    try:
        socket.create_connection((host, int(port)), timeout=KNOCK_SECONDS).close()
    except OSError as error:
        raise _no_cluster(address, error.strerror or str(error)) from error
    return True


def _no_cluster(address: str, reason: str) -> DeviceUnavailable:
    return DeviceUnavailable(
        f"--ray {address}: no Ray cluster there ({reason}). Start one with: ray start --head."
    )


def _refused(address: str, reason: str) -> DeviceUnavailable:
    return DeviceUnavailable(
        f"--ray {address}: a server answered but refused the connection ({reason}). Expected the "
        "head of a cluster with the same Ray and the same token (RAY_AUTH_MODE); see "
        "docs/cluster.md."
    )


class RemotePipeline:
    """A pipeline on another machine, called by RayWorker; Ray gives each call its own thread."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._pipeline: Pipeline | None = None
        self._changed = threading.Condition()
        self._progress: dict[str, tuple[str, float]] = {}  # scenes in progress

    def open(self) -> None:
        """Load the network. Ray would wrap errors that are raised in the constructor."""
        self._pipeline = Pipeline(self._settings)

    def process(self, job: Job) -> Record:
        """Process one light field."""
        assert self._pipeline is not None  # jobs are only submitted after `open`
        self._note(job.scene, "checking", 0.0)
        try:
            return self._pipeline.process(job, self._note)
        finally:
            with self._changed:
                del self._progress[job.scene]
                self._changed.notify_all()

    def stop(self) -> None:
        """Cancel all running light fields, and wait until nothing is being written."""
        if self._pipeline is not None:
            self._pipeline.close()
        with self._changed:
            self._changed.wait_for(lambda: not self._progress)

    def progress(self) -> dict[str, tuple[str, float]]:
        """Return the progress of every running light field."""
        with self._changed:
            return dict(self._progress)

    def _note(self, scene: str, stage: str, fraction: float) -> None:
        with self._changed:
            self._progress[scene] = stage, fraction


class RayWorker:
    """A pipeline in a Ray actor, on any machine that has room for it."""

    def __init__(self, settings: Settings, needs: dict[str, int], report: Report) -> None:
        self._ray = import_module("ray")  # untyped, so that mypy gives the same result without Ray
        self._report = report
        remote = self._ray.remote(max_concurrency=IN_FLIGHT + 2, **needs)(RemotePipeline)
        self._actor = remote.remote(settings)
        self._opening = self._actor.open.remote()
        self._progress: Any = None  # a pending answer
        self._stopping: Any = None  # a pending answer

    def is_ready(self) -> bool:
        """Whether the actor is running and the network is loaded; also reports progress."""
        try:
            if not self._is_there(self._opening):
                return False
            self._ray.get(self._opening)
            self._tell_progress()
        except self._ray.exceptions.RayError as error:
            raise _ours(error) from error
        return True

    def submit(self, job: Job) -> Future[Record]:
        """Process a light field in the actor."""
        future: Future[Record] = Future()

        def pass_on(answer: Future[Record]) -> None:
            error = answer.exception()
            if error is None:
                future.set_result(answer.result())
            else:
                future.set_exception(_ours(error))

        self._actor.process.remote(job).future().add_done_callback(pass_on)
        return future

    def stop(self) -> None:
        """Ask the actor to cancel all running light fields."""
        if self._stopping is None:
            self._stopping = self._actor.stop.remote()

    def close(self) -> None:
        """Stop, wait until the actor has stopped, then kill it; Ray does not wait for a kill."""
        self.stop()
        if self._is_there(self._opening):  # otherwise it has not started yet
            self._ray.wait([self._stopping], timeout=PATIENCE_SECONDS)
        self._ray.kill(self._actor)

    def _tell_progress(self) -> None:
        if self._progress is not None and self._is_there(self._progress):
            for scene, (stage, fraction) in self._ray.get(self._progress).items():
                self._report(scene, stage, fraction)
            self._progress = None
        if self._progress is None:
            self._progress = self._actor.progress.remote()

    def _is_there(self, answer: Any) -> bool:
        ready, _ = self._ray.wait([answer], timeout=0)
        return bool(ready)


def _ours(error: BaseException) -> BaseException:
    """Turn an error from Ray into ours: the worker died, or it raised an error."""
    if isinstance(error, OaccDepthError):  # Ray's wrapper is an instance of the class that it wraps
        return getattr(error, "cause", error)
    if hasattr(error, "cause"):  # a RayTaskError: a bug in the worker, which did not die
        return error
    return WorkerDied(str(error).splitlines()[0])
