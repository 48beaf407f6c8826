"""Records of a batch -> report.csv and report.json."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from oaccdepth.batch.job import Record
from oaccdepth.evaluation import scores
from oaccdepth.files.atomic import write_bytes, write_json

CSV_FILE, JSON_FILE = "report.csv", "report.json"


def write_report(output: Path, records: Sequence[Record], about: dict[str, Any]) -> None:
    """Write both files; `about` is what is the same for all scenes."""
    write_bytes(output / CSV_FILE, as_csv(records).encode())
    content = {**about, "scenes": [asdict(record) for record in records]}
    write_json(output / JSON_FILE, content)


def remove_report(output: Path) -> None:
    """Remove the report of an earlier run: it would not be true while this one goes on."""
    for name in (CSV_FILE, JSON_FILE):
        (output / name).unlink(missing_ok=True)


def as_csv(records: Sequence[Record]) -> str:
    """One row per scene."""
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
