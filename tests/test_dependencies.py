"""Dependencies: minimum versions without known holes; every package of every extra is pinned."""

from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

tomllib = pytest.importorskip("tomllib")  # from Python 3.11 on

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NEEDED = [
    Requirement(text)
    for text in (
        *PROJECT["dependencies"],
        *(text for extra in PROJECT["optional-dependencies"].values() for text in extra),
    )
]
PINNED = {
    name.lower().replace("_", "-"): Version(version)
    for name, _, version in (
        line.partition("==") for line in (ROOT / "constraints.txt").read_text().split()
    )
}
PINS = [line.partition("==")[0] for line in (ROOT / "constraints.txt").read_text().split()]
# Versions with holes that a malicious file could exploit, as published up to November 2026.
HOLES = {
    "torch": ("2.5.1", "CVE-2025-32434: torch.load(weights_only=True) runs code"),
    "pillow": ("10.2.0", "CVE-2024-28219: buffer overflow"),
    "pillow ": ("11.2.1", "CVE-2025-48379: buffer overflow"),
    "opencv-python-headless": ("4.8.0.76", "CVE-2023-4863: libwebp"),
    "h5py": ("3.15.1", "HDF5 1.14 crashes on a tree of chunks that leads back to itself"),
    "ray": ("2.51.2", "CVE-2025-62593: a web page runs code"),
    "onnx": ("1.20.1", "CVE-2026-34445, CVE-2025-51480: files outside the model's folder"),
}


@pytest.mark.parametrize("needed", NEEDED, ids=lambda needed: needed.name)
def test_every_package_is_pinned_to_a_version_that_will_do(needed):
    assert PINNED[needed.name.lower()] in needed.specifier


def test_what_packages_need_is_pinned_too():
    """Everything installed here is pinned, so that an extra is the same on every machine."""
    waiting, needed = [need.name for need in NEEDED], set()
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name in needed:
            continue
        needed.add(name)
        try:
            texts = metadata.requires(name) or []
        except metadata.PackageNotFoundError:  # of an extra that is not installed
            continue
        more = [Requirement(text) for text in texts]
        waiting += [
            one.name for one in more if not one.marker or one.marker.evaluate({"extra": ""})
        ]
    for_gpus = ("nvidia-", "cuda-", "triton")  # torch pins these itself
    assert not [name for name in needed - set(PINNED) if not name.startswith(for_gpus)]


def test_every_package_is_pinned_once():
    """With two versions, pip could install neither."""
    assert len(PINS) == len(set(PINS))


@pytest.mark.parametrize(("name", "version", "hole"), [(n, *rest) for n, rest in HOLES.items()])
def test_versions_with_known_holes_are_not_accepted(name, version, hole):
    (needed,) = (needed for needed in NEEDED if needed.name == name.strip())
    assert version not in needed.specifier, hole
