"""Distributes light fields over workers and collects their records; replaces workers that die.

A worker is a pipeline in this process, in another process or (`cluster`) on another machine.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from logging.handlers import QueueHandler
from multiprocessing import get_context
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Protocol

from oaccdepth.batch.job import Job, Pipeline, Record, Report, Settings
from oaccdepth.errors import DeviceUnavailable, OaccDepthError
from oaccdepth.files.signals import uninterrupted

logger = logging.getLogger(__name__)

IN_FLIGHT = 3  # light fields per worker: one being read, one in the network, one being written
ATTEMPTS = 3  # tries per light field if its worker dies
DEATHS_IN_A_ROW = 8  # with no record in between: all workers have the same problem
POLL_SECONDS = 0.25
PATIENCE_SECONDS = 30


class WorkerDied(Exception):
    """The process or machine of a worker is gone; another worker takes over its light fields."""


class Worker(Protocol):
    """A pipeline that runs somewhere: in this process, in another, or on another machine."""

    def is_ready(self) -> bool:
        """Whether the worker accepts light fields yet; may raise WorkerDied."""

    def submit(self, job: Job) -> Future[Record]:
        """Process a light field. The future raises WorkerDied if the worker dies first."""

    def stop(self) -> None:
        """Accept no more light fields and cancel the running ones, without waiting."""

    def close(self) -> None:
        """Stop, and wait until nothing is being written; may be called twice."""


@dataclass(frozen=True, eq=False)
class _Task:
    """A light field that a worker is processing."""

    job: Job
    worker: Worker
    attempt: int


class Crew:
    """A fixed number of workers, numbered by place; `hire(place)` makes a new one."""

    def __init__(self, hire: Callable[[int], Worker], size: int) -> None:
        self._hire = hire
        self._size = size
        self._workers: dict[int, Worker] = {}
        self._waiting: deque[tuple[Job, int]] = deque()  # job, number of the attempt
        self._running: dict[Future[Record], _Task] = {}
        self._deaths = 0  # since the last record
        self._polls = 0  # while no worker was ready

    def run(self, jobs: Iterable[Job]) -> Generator[Record, None, None]:
        """Yield the record of each light field when it is finished."""
        self._waiting.extend((job, 1) for job in jobs)
        try:
            while self._waiting or self._running:
                self._hand_out()
                if not self._running:
                    self._wait_for_workers()
                    continue
                finished, _ = wait(self._running, POLL_SECONDS, FIRST_COMPLETED)
                for future in finished:
                    yield from self._collect(future)
        except KeyboardInterrupt:
            logger.warning("stopping: scenes under way are cancelled at the end of their tile.")
            raise
        finally:
            self.close()

    def close(self) -> None:
        """Stop all workers, and wait until none of them is writing."""
        workers = list(self._workers.values())
        for worker in workers:  # stop all first, so that we wait only for the slowest
            worker.stop()
        for worker in workers:
            worker.close()

    def _wait_for_workers(self) -> None:
        time.sleep(POLL_SECONDS)
        self._polls += 1
        if self._polls * POLL_SECONDS == PATIENCE_SECONDS:
            logger.warning("no worker is ready yet: the cluster may be full. Still waiting.")

    def _hand_out(self) -> None:
        for place in range(min(self._size, len(self._waiting) + len(self._running))):
            if place not in self._workers:
                self._workers[place] = self._hire(place)
            worker = self._workers[place]
            try:
                ready = worker.is_ready()
            except WorkerDied as error:
                self._replace(worker, error)
                continue
            while ready and self._waiting and self._has_room(worker, self._waiting[0][1]):
                job, attempt = self._waiting.popleft()
                self._running[worker.submit(job)] = _Task(job, worker, attempt)

    def _has_room(self, worker: Worker, attempt: int) -> bool:
        """Whether a worker can take one more. Retries run alone, to find the one that kills it."""
        attempts = [task.attempt for task in self._running.values() if task.worker is worker]
        if max([attempt, *attempts]) > 1:
            return not attempts
        return len(attempts) < IN_FLIGHT

    def _collect(self, future: Future[Record]) -> Iterator[Record]:
        task = self._running.pop(future)
        try:
            record = future.result()
        except WorkerDied as error:
            self._replace(task.worker, error)
            if task.attempt < ATTEMPTS:
                self._waiting.append((task.job, task.attempt + 1))
                return
            record = Record(task.job.scene, "failed", f"its worker died {ATTEMPTS} times: {error}")
        self._deaths = 0
        yield record

    def _replace(self, worker: Worker, error: WorkerDied) -> None:
        """Remove a dead worker, unless that was done when another of its light fields failed."""
        places = [place for place, other in self._workers.items() if other is worker]
        for place in places:
            logger.warning("a worker died: %s", error)
            del self._workers[place]
            worker.close()
            self._deaths += 1
        if self._deaths > DEATHS_IN_A_ROW:
            raise DeviceUnavailable(f"every worker dies: {error}. See its log.")


class LocalWorker:
    """A pipeline in this process, with one thread per light field."""

    def __init__(self, settings: Settings, report: Report) -> None:
        self._pipeline = Pipeline(settings)
        self._report = report
        self._threads = ThreadPoolExecutor(IN_FLIGHT, "scene")

    def is_ready(self) -> bool:
        """Always ready."""
        return True

    def submit(self, job: Job) -> Future[Record]:
        """Process a light field in a thread."""
        return self._threads.submit(self._pipeline.process, job, self._report)

    def stop(self) -> None:
        """Finish the files that are being written; cancel everything else."""
        self._pipeline.stop()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """Stop, and wait for it."""
        self.stop()
        self._pipeline.close()
        self._threads.shutdown()


class ProcessWorker:
    """A pipeline in its own process."""

    def __init__(self, settings: Settings, report: Report, num_threads: int | None = None) -> None:
        context = get_context("spawn")  # a forked process cannot use CUDA, nor torch's threads
        self._connection, theirs = context.Pipe()
        self._report = report
        self._lock = threading.Lock()
        self._futures: dict[str, Future[Record]] = {}  # by scene
        self._gone = False
        self._process = context.Process(
            target=serve, args=(theirs, settings, num_threads), daemon=True
        )
        # Ctrl-C reaches every process. Only the batch handles it, after this process has started.
        with uninterrupted(), _without_interrupts():
            self._process.start()
        theirs.close()  # otherwise we would not notice that the process has ended
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def is_ready(self) -> bool:
        """Always ready: light fields wait in the pipe until the process has started."""
        return True

    def submit(self, job: Job) -> Future[Record]:
        """Process a light field in the other process."""
        future: Future[Record] = Future()
        with self._lock:
            if self._gone:
                future.set_exception(self._death())
                return future
            self._futures[job.scene] = future
        with suppress(OSError):  # the listener notices that the process is gone
            self._connection.send(job)
        return future

    def stop(self) -> None:
        """Kill the process; this is safe because output files are atomic."""
        self._process.kill()

    def close(self) -> None:
        """Stop, and wait for it."""
        self.stop()
        self._process.join()
        self._listener.join()
        self._connection.close()

    def _listen(self) -> None:
        """Handle messages from the other process until it ends."""
        with suppress(EOFError, OSError):
            while True:
                self._hear(self._connection.recv())
        with self._lock:
            self._gone = True
            orphans = list(self._futures.values())
        for future in orphans:
            future.set_exception(self._death())

    def _hear(self, message: Message) -> None:
        if isinstance(message, Record):
            with self._lock:
                future = self._futures.pop(message.scene)
            future.set_result(message)
        elif isinstance(message, OaccDepthError):  # it could not start, so no worker can
            with self._lock:
                futures, self._futures = self._futures, {}
            for future in futures.values():
                future.set_exception(message)
        elif isinstance(message, logging.LogRecord):
            theirs = logging.getLogger(message.name)
            if theirs.isEnabledFor(message.levelno):
                theirs.handle(message)
        else:
            self._report(*message)

    def _death(self) -> WorkerDied:
        self._process.join()
        code = self._process.exitcode or 0
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return WorkerDied(f"process ended with {how}")


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Protect a process that is started inside from Ctrl-C, even during its start."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # else the first process starts it and unblocks the signal
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


Message = Record | OaccDepthError | logging.LogRecord | tuple[str, str, float]


class _LogToBatch(QueueHandler):
    """Sends the log of a worker to the batch, which decides what to show and where."""

    def __init__(self, send: Callable[[Message], None]) -> None:
        super().__init__(SimpleQueue())  # not used
        self._send = send

    def enqueue(self, record: logging.LogRecord) -> None:
        """Send a log record; QueueHandler has made it picklable."""
        self._send(record)


def serve(connection: Connection, settings: Settings, num_threads: int | None) -> None:
    """Process light fields from the pipe: the other end of ProcessWorker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if num_threads is not None:
        os.environ["OMP_NUM_THREADS"] = str(num_threads)  # before torch is imported
    lock = threading.Lock()

    def send(message: Message) -> None:
        with lock, suppress(OSError):  # the batch is gone: the loop below ends, too
            connection.send(message)

    log = logging.getLogger("oaccdepth")
    log.handlers[:] = [_LogToBatch(send)]
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        worker = LocalWorker(settings, lambda *progress: send(progress))
    except OaccDepthError as error:
        send(error)
        return
    with suppress(EOFError, OSError):  # the batch has ended, or was killed
        while True:
            worker.submit(connection.recv()).add_done_callback(lambda done: send(done.result()))
    os._exit(0)  # at once: nobody needs the unfinished results
