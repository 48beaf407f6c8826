"""Batches: what is found, done, skipped, recorded; overlap, processes, a worker that dies."""

import csv
import json
import logging
import threading
import time
from dataclasses import replace

import cv2
import numpy as np
import pytest
from batch_scenes import (
    contents,
    open_bad_weights,
    open_deadly,
    open_deadly_after_writing,
    open_talkative,
    run,
    statuses,
    toy_estimate,
    write_scene,
)

from oaccdepth import readers
from oaccdepth.batch import choose_devices, find_jobs, run_jobs
from oaccdepth.batch.crew import ProcessWorker
from oaccdepth.batch.job import fingerprint
from oaccdepth.errors import InvalidCheckpoint, InvalidOption, UnreadableFile, UnwritableOutput
from oaccdepth.files.pfm import read_pfm
from oaccdepth.options import BatchOptions, EstimateOptions, WriteOptions
from oaccdepth.writers import results


def test_finds_everything_and_mirrors_the_tree(root, settings):
    summary = run(root, settings)
    assert list(statuses(summary).items()) == [
        ("test/origami", "done"),
        ("town", "done"),
        ("training/boxes", "done"),
        ("training/cotton", "done"),
    ]
    for name in statuses(summary):
        found = {path.name for path in (settings.output / name).iterdir()}
        assert found == {"disparity.pfm", "disparity.png", "confidence.png", "run.json"}
    expected = readers.read(root / "town").centre.mean(axis=-1)
    np.testing.assert_array_equal(read_pfm(settings.output / "town" / "disparity.pfm"), expected)


def test_report(root, settings):
    (root / "town" / "input_Cam004.png").write_bytes(b"not a picture")
    run(root, settings)
    with (settings.output / "report.csv").open() as file:
        rows = {row["scene"]: row for row in csv.DictReader(file)}
    boxes = rows["training/boxes"]
    assert (boxes["status"], boxes["format"], boxes["grid"]) == ("done", "hci", "3x3")
    assert boxes["resolution"] == "32x32"
    assert float(boxes["seconds"]) >= 0
    assert int(boxes["peak_memory_bytes"]) > 2**20
    assert 0 <= float(boxes["disparity_min"]) < float(boxes["disparity_max"]) <= 1
    disparity = read_pfm(settings.output / "training" / "boxes" / "disparity.pfm")[15:17, 15:17]
    assert float(boxes["mse_100"]) == pytest.approx(100 * np.mean((disparity - 0.5) ** 2))
    assert rows["training/cotton"]["mse_100"] == ""
    assert rows["town"]["status"] == "failed"
    assert "input_Cam004.png" in rows["town"]["message"]

    report = json.loads((settings.output / "report.json").read_text())
    assert [scene["scene"] for scene in report["scenes"]] == list(rows)
    assert report["weights_sha256"] == "1" * 64
    assert report["not_reached"] == []


def test_a_bad_scene_does_not_stop_the_others(root, settings):
    (root / "town" / "input_Cam004.png").write_bytes(b"")
    summary = run(root, settings)
    assert [record.scene for record in summary.failed] == ["town"]
    assert sorted(statuses(summary).values()) == ["done", "done", "done", "failed"]
    assert not (settings.output / "town").exists()


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ZeroDivisionError("oops"), "unexpected ZeroDivisionError: oops"),
        (
            MemoryError("Unable to allocate 33.0 MiB"),
            "not enough memory. Close other programs, or give fewer or smaller views.",
        ),
    ],
)
def test_an_unexpected_error_is_recorded(root, settings, error, message):
    def open_broken(options):
        def estimate(light_field, options, progress):
            raise error

        return estimate

    summary = run(root, replace(settings, open_network=open_broken))
    assert {r.message for r in summary.failed} == {message}
    assert {path.name for path in settings.output.iterdir()} == {"report.csv", "report.json"}


def test_bad_ground_truth_is_told_but_no_failure(root, settings):
    truth = root / "training" / "boxes" / "gt_disp_lowres.pfm"
    truth.write_bytes(b"Pf\n32 32\n-1\n")
    (boxes,) = [r for r in run(root, settings).records if r.scene == "training/boxes"]
    assert boxes.status == "done"
    assert boxes.scores == {}
    assert boxes.notes[-1].startswith("ground truth not used: ")


def test_done_scenes_are_skipped(root, settings):
    first = run(root, settings)
    before = contents(settings.output)
    second = run(root, settings)
    assert set(statuses(second).values()) == {"skipped"}
    assert contents(settings.output) == before
    # a skipped scene is reported with the times and scores of its first run
    assert [r.seconds for r in second.records] == [r.seconds for r in first.records]
    assert [r.scores for r in second.records] == [r.scores for r in first.records]


def change_input(root, settings):
    name = root / "town" / "input_Cam000.png"
    assert cv2.imwrite(str(name), 255 - cv2.imread(str(name)))
    return settings, ["town"]


def change_weights(root, settings):
    return replace(settings, weights_sha256="2" * 64), None


def change_iterations(root, settings):
    return replace(settings, estimating=replace(settings.estimating, iterations=1)), None


def change_reading(root, settings):
    return replace(settings, reading=replace(settings.reading, gamma=2.0)), None


def change_colours(root, settings):
    return replace(settings, writing=WriteOptions(colormap="magma")), None


def remove_a_file(root, settings):
    (settings.output / "town" / "disparity.png").unlink()
    return settings, ["town"]


def damage_run(root, settings):
    (settings.output / "town" / "run.json").write_text("{}")
    return settings, ["town"]


@pytest.mark.parametrize(
    "change",
    [
        change_input,
        change_weights,
        change_iterations,
        change_reading,
        change_colours,
        remove_a_file,
        damage_run,
    ],
)
def test_what_changed_is_done_again(root, settings, change):
    run(root, settings)
    changed, expected = change(root, settings)
    summary = run(root, changed)
    again = [scene for scene, status in statuses(summary).items() if status == "done"]
    assert again == (expected or list(statuses(summary)))


def test_the_device_does_not_matter(root, settings):
    run(root, settings)
    elsewhere = replace(settings, estimating=EstimateOptions(device="cuda:1"))
    assert set(statuses(run(root, elsewhere)).values()) == {"skipped"}


def test_redo(root, settings):
    run(root, settings)
    assert set(statuses(run(root, settings, BatchOptions(redo=True))).values()) == {"done"}


def test_further_formats_of_an_earlier_run_go(root, settings):
    run(root, replace(settings, writing=WriteOptions(formats=("npy",))))
    assert (settings.output / "town" / "disparity.npy").exists()
    run(root, settings)
    assert not (settings.output / "town" / "disparity.npy").exists()


@pytest.mark.parametrize(
    "options, expected",
    [
        (BatchOptions(include=("training/*",)), ["training/boxes", "training/cotton"]),
        (BatchOptions(include=("boxes", "t*n")), ["town", "training/boxes", "training/cotton"]),
        (BatchOptions(exclude=("training/*", "town")), ["test/origami"]),
        (BatchOptions(include=("t*",), exclude=("*/*",)), ["town"]),
        (BatchOptions(limit=2), ["test/origami", "town"]),
    ],
)
def test_choosing(root, tmp_path, options, expected):
    assert [job.scene for job in find_jobs(root, tmp_path / "out", options)] == expected


def test_nothing_to_do(root, tmp_path):
    with pytest.raises(UnreadableFile) as error:
        find_jobs(root, tmp_path / "out", BatchOptions(include=("nothing",)))
    assert str(error.value) == (
        f"{root}: no light field to process (4 found). "
        "`oaccdepth formats` lists what is recognised; check --include and --exclude."
    )
    with pytest.raises(UnreadableFile) as error:
        find_jobs(root / "nowhere", tmp_path / "out")
    assert str(error.value) == (
        f"{root}/nowhere: no such folder. Give the folder that holds the scenes."
    )


def test_output_inside_root_is_not_input(root, settings, monkeypatch, caplog):
    monkeypatch.setattr(logging.getLogger("oaccdepth"), "propagate", True)  # for caplog
    write_scene(root / "results" / "old")
    inside = replace(settings, output=root / "results")
    assert "results/old" not in statuses(run(root, inside))
    assert set(statuses(run(root, inside)).values()) == {"skipped"}
    assert caplog.messages[0] == f"ignored light fields inside --output {root}/results: 1 found."


def test_output_must_not_lie_among_views(root):
    with pytest.raises(InvalidOption) as error:
        find_jobs(root, root)
    assert str(error.value) == (
        f"--output {root}: results would lie among the views of test/origami. "
        "Choose another --output."
    )
    with pytest.raises(InvalidOption) as error:
        find_jobs(root, root / "town")
    assert str(error.value) == (
        f"--output {root}/town: results would lie among the views of town. Choose another --output."
    )


def test_output_above_root(root, settings):
    above = replace(settings, output=root.parent)
    run(root, above)
    change_input(root, above)
    assert [s for s, status in statuses(run(root, above)).items() if status == "done"] == ["town"]


def test_one_light_field_is_a_batch(root, settings):
    assert statuses(run(root / "town", settings)) == {"town": "done"}


def test_fingerprint(root, tmp_path):
    scene = root / "training" / "boxes"
    before = fingerprint(scene, tmp_path / "out")
    copied = tmp_path / "elsewhere"
    copied.mkdir()
    for path in scene.iterdir():
        (copied / path.name).write_bytes(path.read_bytes())
    assert fingerprint(copied, tmp_path / "out") == before
    (copied / ".DS_Store").write_bytes(b"1")
    assert fingerprint(copied, tmp_path / "out") == before
    (copied / "input_Cam000.png").rename(copied / "input_Cam010.png")
    assert fingerprint(copied, tmp_path / "out") != before


def test_reading_and_writing_overlap_with_the_network(root, settings, monkeypatch):
    """The first estimate waits until another scene is read, and the first write until another
    is in the network. Without overlap, they would wait for ever."""
    read, write = readers.read, results.write
    begun = {"reading": [], "network": [], "writing": []}
    overlapped = {"reading": threading.Event(), "network": threading.Event()}

    def begin(stage, waits_for=None):
        begun[stage].append(stage)
        if len(begun[stage]) == 2 and stage in overlapped:
            overlapped[stage].set()
        if len(begun[stage]) == 1 and waits_for:
            assert overlapped[waits_for].wait(600)

    def read_slowly(*arguments, **keywords):
        begin("reading")
        return read(*arguments, **keywords)

    def estimate(*arguments):
        begin("network", waits_for="reading")
        return toy_estimate(*arguments)

    def write_slowly(*arguments, **keywords):
        begin("writing", waits_for="network")
        return write(*arguments, **keywords)

    monkeypatch.setattr(readers, "read", read_slowly)
    monkeypatch.setattr(results, "write", write_slowly)
    summary = run(root, replace(settings, open_network=lambda options: estimate))
    assert set(statuses(summary).values()) == {"done"}


def test_one_light_field_at_a_time_in_the_network(root, settings):
    busy = threading.Lock()

    def open_alone(options):
        def estimate(light_field, options, progress):
            assert busy.acquire(blocking=False)
            time.sleep(0.02)
            busy.release()
            return toy_estimate(light_field, options, progress)

        return estimate

    summary = run(root, replace(settings, open_network=open_alone))
    assert set(statuses(summary).values()) == {"done"}


def test_processes_give_the_same(root, settings, tmp_path):
    run(root, settings)
    several = replace(settings, output=tmp_path / "several")
    seen = []
    summary = run(
        root, several, BatchOptions(jobs=2), report=lambda *progress: seen.append(progress)
    )
    assert set(statuses(summary).values()) == {"done"}
    assert contents(several.output) == contents(settings.output)
    stages = [stage for scene, stage, _ in seen if scene == "town"]
    expected = ["checking", "reading", "waiting", "estimating", "network", "writing"]
    assert list(dict.fromkeys(stages)) == expected
    fractions = [fraction for scene, _, fraction in seen if scene == "town"]
    assert fractions == sorted(fractions) and fractions[-1] == 1.0


def test_a_scene_that_kills_its_process(root, settings):
    write_scene(root / "deadly")
    summary = run(root, replace(settings, open_network=open_deadly), BatchOptions(jobs=2))
    assert statuses(summary) == {
        "deadly": "failed",
        "test/origami": "done",
        "town": "done",
        "training/boxes": "done",
        "training/cotton": "done",
    }
    assert summary.failed[0].message == "its worker died 3 times: process ended with SIGKILL"


def test_a_process_that_dies_before_it_says_what_it_has_done(root, settings):
    """The scene is done by this run, not skipped."""
    deadly = replace(settings, open_network=open_deadly_after_writing)
    for status in ("done", "skipped"):
        summary = run(root, deadly, BatchOptions(jobs=2))
        assert set(statuses(summary).values()) == {status}


@pytest.mark.parametrize("jobs", [1, 2])
def test_bad_weights_concern_all(root, settings, jobs):
    with pytest.raises(InvalidCheckpoint) as error:
        run(root, replace(settings, open_network=open_bad_weights), BatchOptions(jobs=jobs))
    assert str(error.value) == "toy.safetensors: damaged."


def test_second_batch_is_kept_out(root, settings):
    refused = []

    def start_another(record):
        with pytest.raises(UnwritableOutput) as error:
            run(root, settings)
        refused.append(str(error.value))

    run(root, settings, on_record=start_another)
    assert refused[0] == (
        f"{settings.output}: another batch is writing here. "
        "Wait for it, or choose another --output."
    )


def test_the_log_of_a_process_comes_to_the_batch(root, settings, caplog):
    """So that `--quiet` and the progress bar apply there, too."""
    worker = ProcessWorker(replace(settings, open_network=open_talkative), lambda *progress: None)
    try:
        job = find_jobs(root, settings.output)[0]
        assert worker.submit(job).result(timeout=600).status == "done"
    finally:
        worker.close()
    assert caplog.messages == ["the network is open"]  # but not the details for -v


def test_choose_devices():
    assert choose_devices("auto", 3, num_gpus=2) == ["cuda:0", "cuda:1", "cuda:0"]
    assert choose_devices("auto", 2, num_gpus=0) == ["auto", "auto"]
    assert choose_devices("cuda:1", 2, num_gpus=2) == ["cuda:1", "cuda:1"]
    assert choose_devices("cpu", 2) == ["cpu", "cpu"]


def test_nothing_in_a_report_says_where_it_was_made(tmp_path, settings):
    """Nor does a scene's `run.json`: no folder above the data is mentioned."""
    root = tmp_path / "my secret folder" / "data"
    for number, name in enumerate(("good", "deep/bad one")):
        write_scene(root / name, number, truth=True)
    (root / "deep" / "bad one" / "input_Cam004.png").write_bytes(b"no picture")
    (root / "good" / "gt_disp_lowres.pfm").write_bytes(b"no map")
    output = tmp_path / "my secret folder" / "out"  # `run.json` holds the relative path
    settings = replace(settings, output=output)
    jobs = find_jobs(root, output)
    summary = run_jobs(jobs, settings)
    records = {record.scene: record for record in summary.records}
    assert records["deep/bad one"].message == (
        "deep/bad one/input_Cam004.png: damaged or not a picture. Copy or export it again."
    )
    assert records["good"].notes[-1].startswith("ground truth not used: good/gt_disp_lowres.pfm: ")
    texts = [path.read_text() for path in output.rglob("*") if path.suffix in (".json", ".csv")]
    assert len(texts) == 3
    for text in texts:
        assert "secret" not in text and str(tmp_path) not in text
