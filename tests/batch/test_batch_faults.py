"""Fifty light fields, some of them faulty: the good ones are done, the bad ones are named."""

import h5py
import numpy as np
from batch_scenes import save_tiny_weights, statuses, write_scene

from oaccdepth.batch import run_batch
from oaccdepth.files.pfm import write_pfm
from oaccdepth.options import EstimateOptions
from oaccdepth.writers.pictures import write_png


def empty_view(scene):
    (scene / "input_Cam003.png").write_bytes(b"")


def truncated_view(scene):
    view = scene / "input_Cam003.png"
    view.write_bytes(view.read_bytes()[:-500])


def text_instead_of_a_view(scene):
    (scene / "input_Cam003.png").write_text("<html>404</html>")


def view_of_another_size(scene):
    write_png(scene / "input_Cam003.png", np.zeros((30, 32, 3), dtype=np.uint8))


def missing_view(scene):
    (scene / "input_Cam003.png").unlink()


def folder_instead_of_a_view(scene):
    (scene / "input_Cam003.png").unlink()
    (scene / "input_Cam003.png").mkdir()


def dangling_link(scene):
    (scene / "input_Cam003.png").unlink()
    (scene / "input_Cam003.png").symlink_to(scene / "nowhere.png")


def broken_configuration(scene):
    (scene / "parameters.cfg").write_text("[intrinsics]\nfocal_length_mm = long\n")


def binary_configuration(scene):
    (scene / "parameters.cfg").write_bytes(bytes(range(128, 256)))


def too_small(scene):
    for view in scene.glob("*.png"):
        write_png(view, np.zeros((8, 8, 3), dtype=np.uint8))


def decompression_bomb(scene):
    header = (scene / "input_Cam003.png").read_bytes()
    size = (60000).to_bytes(4, "big")
    (scene / "input_Cam003.png").write_bytes(header[:16] + size + size + header[24:])


def truncated_hdf5(scene):
    for view in scene.iterdir():
        view.unlink()
    with h5py.File(scene / "lf.h5", "w") as file:
        file["LF"] = np.zeros((3, 3, 32, 32, 3), dtype=np.uint8)
    whole = (scene / "lf.h5").read_bytes()
    (scene / "lf.h5").write_bytes(whole[: len(whole) // 2])


FAULTS = [
    empty_view,
    truncated_view,
    text_instead_of_a_view,
    view_of_another_size,
    missing_view,
    folder_instead_of_a_view,
    dangling_link,
    broken_configuration,
    binary_configuration,
    too_small,
    decompression_bomb,
    truncated_hdf5,
]


def test_fifty_with_faults(tmp_path):
    good, bad = set(), set()
    for index in range(50):
        fault = FAULTS[index // 4] if index % 4 == 0 and index // 4 < len(FAULTS) else None
        name = f"scene{index:02d}-{fault.__name__ if fault else 'good'}"
        write_scene(tmp_path / "root" / name, index, truth=True, side=5)
        if fault:
            fault(tmp_path / "root" / name)
        (bad if fault else good).add(name)
    (tmp_path / "root" / "scene01-good" / "gt_disp_lowres.pfm").write_bytes(b"Pf\n32")
    write_pfm(tmp_path / "root" / "scene02-good" / "gt_disp_lowres.pfm", np.zeros((4, 4), "f4"))
    (tmp_path / "root" / "notes.txt").write_text("not a light field")
    (tmp_path / "root" / "empty").mkdir()

    weights = save_tiny_weights(tmp_path / "tiny.safetensors")
    summary = run_batch(
        tmp_path / "root", tmp_path / "out", estimating=EstimateOptions(weights=str(weights))
    )
    done = {scene for scene, status in statuses(summary).items() if status == "done"}
    named = {record.scene.partition("/")[0]: record.message for record in summary.failed}
    assert done == good
    assert set(named) == bad
    for scene, message in named.items():
        assert scene in message and "\n" not in message and "unexpected" not in message
    notes = [note for record in summary.records for note in record.notes]
    assert sum(note.startswith("ground truth not used: ") for note in notes) == 1  # damaged
    assert sum(note.startswith("not scored: ") for note in notes) == 1  # of another size
