"""Workers on a Ray cluster, each a pipeline with a GPU or a few CPUs.

ROOT and OUT are on storage that every machine sees under the same path, and oaccdepth is installed
on every machine.
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
CPUS_PER_WORKER = 4  # without a GPU; the network gains little from more


def make_ray_crew(settings: Settings, address: str, jobs: int | None, report: Report) -> Crew:
    """Workers on the cluster at `address` ("auto": the one of this machine; "local": a new one)."""
    ray = _connect(address)
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    needs, possible = choose_resources(settings.estimating.device, nodes)
    if needs.get("num_gpus"):  # Ray shows each worker its own GPU only
        settings = replace(settings, estimating=replace(settings.estimating, device="cuda"))

    def hire(place: int) -> Worker:
        return RayWorker(settings, needs, report)

    return Crew(hire, jobs or possible)


def choose_resources(device: str, nodes: list[dict[str, float]]) -> tuple[dict[str, int], int]:
    """What each worker needs, and how many of them fit on the machines."""
    num_gpus = sum(int(node.get("GPU", 0)) for node in nodes)
    if device.startswith("cuda") or (device == "auto" and num_gpus):
        return {"num_gpus": 1}, max(1, num_gpus)
    cpus = [int(node.get("CPU", 0)) for node in nodes]
    needed = max(1, min(CPUS_PER_WORKER, max(cpus, default=1)))  # a worker is on one machine
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
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # the default of the future
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        reason = str(error).splitlines()[0].partition(". ")[0]  # the rest: options of Ray's own
        raise _refused(address, reason) if is_there else _no_cluster(address, reason) from error
    return ray


def _knock(address: str) -> bool:
    """Find out at once whether a server answers; Ray itself would try for minutes."""
    host, _, port = address.rpartition("/")[2].rpartition(":")  # also ray://HOST:PORT
    if not port.isdecimal():  # auto, local, or a name of Ray's
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
        self._progress: dict[str, tuple[str, float]] = {}  # by scene: those under way

    def open(self) -> None:
        """Load the network; not in the constructor, so that its errors arrive unchanged."""
        self._pipeline = Pipeline(self._settings)

    def process(self, job: Job) -> Record:
        """Process one light field."""
        assert self._pipeline is not None  # no job comes before `open` is done
        self._note(job.scene, "checking", 0.0)
        try:
            return self._pipeline.process(job, self._note)
        finally:
            with self._changed:
                del self._progress[job.scene]
                self._changed.notify_all()

    def stop(self) -> None:
        """Cancel what is under way; when it returns, nothing is being written."""
        if self._pipeline is not None:
            self._pipeline.close()
        with self._changed:
            self._changed.wait_for(lambda: not self._progress)

    def progress(self) -> dict[str, tuple[str, float]]:
        """The progress of the light fields under way."""
        with self._changed:
            return dict(self._progress)

    def _note(self, scene: str, stage: str, fraction: float) -> None:
        with self._changed:
            self._progress[scene] = stage, fraction


class RayWorker:
    """A pipeline in an actor, wherever Ray finds room for it."""

    def __init__(self, settings: Settings, needs: dict[str, int], report: Report) -> None:
        self._ray = import_module("ray")  # untyped, so that mypy says the same without the extra
        self._report = report
        remote = self._ray.remote(max_concurrency=IN_FLIGHT + 2, **needs)(RemotePipeline)
        self._actor = remote.remote(settings)
        self._opening = self._actor.open.remote()
        self._progress: Any = None  # an answer on its way
        self._stopping: Any = None  # the same

    def is_ready(self) -> bool:
        """Whether Ray has found room for it and the network is loaded; reports its progress."""
        try:
            if not self._is_there(self._opening):
                return False
            self._ray.get(self._opening)
            self._tell_progress()
        except self._ray.exceptions.RayError as error:
            raise _ours(error) from error
        return True

    def submit(self, job: Job) -> Future[Record]:
        """Process a light field on the other machine."""
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
        """Ask the actor to cancel what is under way."""
        if self._stopping is None:
            self._stopping = self._actor.stop.remote()

    def close(self) -> None:
        """Wait for that, then end the actor; Ray does not say when what it kills is dead."""
        self.stop()
        if self._is_there(self._opening):  # or it has no light field, and perhaps no machine
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
    """Turn Ray's errors into ours: the worker died, or an error was raised in it."""
    if isinstance(error, OaccDepthError):  # Ray's wrapper is also an instance of what it wraps
        return getattr(error, "cause", error)
    if hasattr(error, "cause"):  # a RayTaskError: a bug in the worker, not its death
        return error
    return WorkerDied(str(error).splitlines()[0])
