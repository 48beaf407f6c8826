"""Records of a batch -> report.csv and report.json, and an index page if the scenes have pages."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from oaccdepth.batch.job import Job, Record
from oaccdepth.evaluation import scores
from oaccdepth.files.atomic import write_bytes, write_json
from oaccdepth.files.pfm import read_pfm
from oaccdepth.looking.gallery import Entry, write_gallery
from oaccdepth.writers.results import VIEWER_FILE

CSV_FILE, JSON_FILE, INDEX_FILE = "report.csv", "report.json", "index.html"
SHOWN = ("mse_100", "badpix_0070", "q25_100")  # scores on the index page


def write_report(output: Path, records: Sequence[Record], about: dict[str, Any]) -> None:
    """Write both files; `about` holds the facts that apply to all scenes."""
    write_bytes(output / CSV_FILE, as_csv(records).encode("utf-8", "backslashreplace"))
    content = {**about, "scenes": [asdict(record) for record in records]}
    write_json(output / JSON_FILE, content)


def remove_report(output: Path) -> None:
    """Remove the report of an earlier run, which is out of date as soon as this run starts."""
    for name in (CSV_FILE, JSON_FILE, INDEX_FILE):
        (output / name).unlink(missing_ok=True)


def write_index(output: Path, jobs: Sequence[Job], records: Mapping[str, Record]) -> None:
    """Write the index page: every scene with a link to its page, or the reason why it failed."""
    entries = [_entry(job, records[job.scene]) for job in jobs if job.scene in records]
    scored = [record.scores for record in records.values() if record.scores]
    summary = ["1 scene" if len(entries) == 1 else f"{len(entries)} scenes"]
    for name in SHOWN if len(scored) > 1 else ():
        values = [value for one in scored if (value := one.get(name)) is not None]
        if values:
            summary.append(f"mean {scores.TITLES[name]} {sum(values) / len(values):.3f}")
    write_gallery(output / INDEX_FILE, entries, output.name, summary)


def _entry(job: Job, record: Record) -> Entry:
    page = job.folder / VIEWER_FILE
    if record.status == "failed" or not page.is_file():
        return Entry(record.scene, message=record.message or "no page")
    height, width = record.resolution
    facts = {"views": f"{'x'.join(map(str, record.grid))} of {width}x{height} px"}
    for name in SHOWN:
        if (value := record.scores.get(name)) is not None:
            facts[scores.TITLES[name]] = f"{value:.3f}"
    if record.seconds is not None:
        facts["time"] = f"{record.seconds:.1f} s"
    return Entry(record.scene, page, read_pfm(job.folder / "disparity.pfm"), facts)


def as_csv(records: Sequence[Record]) -> str:
    """Format the records as CSV, one row per scene."""
    rows = [_row(record) for record in records]
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(_row(Record("", ""))), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _row(record: Record) -> dict[str, Any]:
    lowest, highest = record.disparity_range or (None, None)
    return {
        "scene": record.scene,
        "status": record.status,
        "format": record.format,
        "grid": "x".join(map(str, record.grid)),
        "resolution": "x".join(map(str, record.resolution)),
        "seconds": record.seconds,
        "peak_memory_bytes": record.peak_memory_bytes,
        "disparity_min": lowest,
        "disparity_max": highest,
        **{name: record.scores.get(name) for name in scores.METRICS},
        "message": record.message,
        "notes": " ".join(record.notes),
    }
