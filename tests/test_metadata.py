"""Arbitrary metadata in every file that has some: a result, or one of our errors."""

import json
import time
from dataclasses import fields

import h5py
import lightfield_files as files
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from oaccdepth import readers
from oaccdepth.batch.job import Job, earlier_record
from oaccdepth.disparity import DisparityMap, Provenance
from oaccdepth.errors import OaccDepthError, UnreadableFile
from oaccdepth.evaluation.submission import find_runtimes
from oaccdepth.files.fields import BadField, as_camera, as_number, as_range
from oaccdepth.lightfield import Camera, LightField
from oaccdepth.networks.configuration import parse_config
from oaccdepth.networks.fast import FastConfig
from oaccdepth.networks.paper import OACCNetConfig
from oaccdepth.options import ReadOptions
from oaccdepth.pipeline import read_again
from oaccdepth.readers.decoding import read_header
from oaccdepth.readers.parameters import read_parameters
from oaccdepth.writers import masks, results, scenes

VIEWS, TRUTH = files.render((3, 3), (12, 16))
OURS = LightField(VIEWS, camera=Camera(1.0, 2.0, 3.0, 4.0), disparity_range=(-1.0, 1.0))
SETTINGS = settings(
    max_examples=60 if settings().derandomize else 1000,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

NUMBERS = st.one_of(
    st.integers(),
    st.floats(),
    st.sampled_from([0, -1, 1, 2, 3, 9, 64, 10**9, 10**20, 10**400, 1e308, True]),
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=8,
)
NUMBER_TEXTS = st.one_of(
    st.sampled_from(
        ["1e999999999", "-1e999999999", "1e-999999999", "nan", "inf", "sNaN", "1_0", "٣", "0x10"]
    ),
    st.text(max_size=12),
    NUMBERS.map(str),
    st.integers(1, 3000).map(lambda length: "9" * length),
)
ARRAYS = st.sampled_from(
    ["f8", "i8", "u1", "?", "U3", "S2", "M8[s]", "m8[s]", "c16", "f2"]
).flatmap(lambda kind: arrays.arrays(kind, arrays.array_shapes(min_dims=0, max_dims=2, max_side=6)))


def survives(act, *arguments, allowed=OaccDepthError):
    """The call soon returns, or raises one of our errors in one line."""
    start = time.process_time()
    try:
        act(*arguments)
    except allowed as error:
        assert "\n" not in str(error)
    assert time.process_time() - start < 20


def changed(content, path, value):
    """A copy of nested mappings with one value replaced; numbers choose the path to it."""
    if not isinstance(content, dict) or not content or not path:
        return value
    names = sorted(content)
    name = names[path[0] % len(names)]
    return {**content, name: changed(content[name], path[1:], value)}


INPUT = {"source": "town", "path": "../town", "reading": {"views": [9, 9], "crop": "8x8"}}


@pytest.fixture(scope="module")
def result_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("result") / "town"
    made_with = Provenance(
        version="0.1", weights="fast", seconds={"total": 1.0}, input=INPUT,
        disparity_range=(-1.0, 1.0), notes=("a note",),
        batch={"made_from": {}, "record": {"scene": "town", "status": "done"}},
    )  # fmt: skip
    result = DisparityMap(TRUTH, np.ones_like(TRUTH), camera=OURS.camera, made_with=made_with)
    results.write(result, folder)
    return folder


@SETTINGS
@given(path=st.lists(st.integers(0, 30), max_size=3), value=ANYTHING)
def test_run_json(result_folder, path, value):
    file = result_folder / "run.json"
    whole = file.read_text()
    try:
        file.write_text(json.dumps(changed(json.loads(whole), path, value)))
        survives(results.read_result, result_folder)
        survives(earlier_record, Job("town", result_folder, result_folder), {})
        survives(find_runtimes, {"town": result_folder / "disparity.pfm"}, None)
        survives(results._remove_previous, result_folder / "none")
    finally:
        file.write_text(whole)


@SETTINGS
@given(name=st.sampled_from([one.name for one in fields(ReadOptions)]), value=ANYTHING)
@example(name="views", value=[10**9, 10**9])
@example(name="use_views", value=[])
@example(name="scale", value="x")
def test_how_the_views_of_a_result_were_read(result_folder, name, value):
    """Values have the right type, or there is an error, because the readers trust options."""
    about = {**INPUT, "path": ".", "reading": {name: value}}
    result = DisparityMap(TRUTH, TRUTH, made_with=Provenance(input=about))
    result_folder.with_name("views").mkdir(exist_ok=True)
    survives(read_again, result_folder.with_name("views"), result)
    for path in ("../views", "a" * 5000, "\0", value):
        about["path"] = path
        survives(read_again, result_folder, result)


@pytest.mark.parametrize(
    "content", ["", "[", "[" * 100_000, "3", "null", '{"files": {"x": 1e999}}']
)
def test_run_json_that_is_none(result_folder, tmp_path, content):
    for name in ("run.json", "masks.json"):
        (tmp_path / name).write_text(content)
    (tmp_path / "disparity.pfm").write_bytes((result_folder / "disparity.pfm").read_bytes())
    with pytest.raises(OaccDepthError):
        results.read_result(tmp_path)
    results._remove_previous(tmp_path)
    masks._remove_previous_masks(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["disparity.pfm"]


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scene") / "scene"
    scenes.write_light_field(OURS, folder)
    return folder


KEYS = (
    "num_cams_x", "num_cams_y", "baseline_mm", "focal_length_mm", "focus_distance_m",
    "sensor_size_mm", "disp_min", "disp_max", "channels", "written_by",
)  # fmt: skip


@pytest.mark.parametrize("blank", [" ", "\t", "\r", "\x0b", "\u00a0", " \t"])
def test_parameters_with_many_blanks(tmp_path, blank):
    """Python's own parser would take hours."""
    path = tmp_path / "parameters.cfg"
    lines = ["[extrinsics]", f"num_cams_x{1000 * blank}= 3", "num_cams_y = 5", "[meta]"]
    path.write_text("\n".join(lines), encoding="utf-8")
    assert read_parameters(path).shape == (5, 3)
    lines.append(f"a{(400_000 // len(blank)) * blank}b")
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(UnreadableFile, match="not a readable configuration file"):
        read_parameters(path)


@SETTINGS
@given(key=st.sampled_from(KEYS), text=NUMBER_TEXTS)
@example(key="num_cams_x", text="1e999999999")
@example(key="baseline_mm", text="1e999999999")
def test_parameters(scene, key, text):
    file = scene / "parameters.cfg"
    whole = file.read_text()
    lines = [
        f"{key} = {text}" if line.startswith(f"{key} =") else line for line in whole.splitlines()
    ]
    try:
        file.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
        survives(readers.read, scene)
    finally:
        file.write_text(whole)


@SETTINGS
@given(path=st.lists(st.integers(0, 9), max_size=2), value=ANYTHING)
@example(path=[2], value=[1])
def test_descriptions_of_pictures(tmp_path_factory, path, value):
    place = tmp_path_factory.mktemp("png") / "a.png"
    scenes.write_light_field(OURS, place)
    description = read_header(place).description
    assert len(description) == 5
    data = scenes._with_text(
        scenes._encode(np.zeros((36, 48, 3), np.uint8), place),
        json.dumps(changed(description, path, value)),
    )
    place.write_bytes(data)
    survives(readers.read, place)


@SETTINGS
@given(name=st.sampled_from(["camera", "disparity_range", "valid", "disparity"]), value=ARRAYS)
@example(name="valid", value=np.full((3, 3), 2.0**31))
@example(name="valid", value=np.full((3, 3), np.nan))
@example(name="valid", value=np.full((3, 3), "yes"))
def test_members_of_archives(tmp_path_factory, name, value):
    path = tmp_path_factory.mktemp("npz") / "a.npz"
    members = {"views": VIEWS, "written_by_oaccdepth": np.array(1), name: value}
    np.savez(path, **members)
    survives(readers.read, path)
    survives(readers.read_ground_truth, path)


@SETTINGS
@given(
    name=st.sampled_from(["camera", "disparity_range", "written_by", "dH", "focalLength", "shift"]),
    value=ARRAYS.filter(lambda value: value.dtype.kind in "fiubS") | st.text(max_size=5),
    ours=st.booleans(),
)
def test_attributes(tmp_path_factory, name, value, ours):
    path = tmp_path_factory.mktemp("h5") / "a.h5"
    with h5py.File(path, "w") as file:
        file["LF"], file["GT_DEPTH"] = VIEWS, TRUTH
        if ours:
            file.attrs["written_by"] = "oaccdepth"
        else:
            file.attrs.update({"dH": 1.0, "focalLength": 2.0})
        if isinstance(value, str):
            value = value.replace("\0", "").encode("utf-8", "replace").decode()
        file.attrs[name] = value
    survives(readers.read, path)
    survives(readers.read_ground_truth, path)


@SETTINGS
@given(kind=st.sampled_from([FastConfig, OACCNetConfig]), index=st.integers(0, 30), value=ANYTHING)
@example(kind=FastConfig, index=0, value={"\n": None})
def test_configurations_of_networks(kind, index, value):
    config = json.loads(json.dumps(vars(kind())))
    survives(parse_config, kind, json.dumps(changed(config, [index], value)), allowed=BadField)
    survives(parse_config, kind, json.dumps(value), allowed=BadField)


@pytest.mark.parametrize("kind", [FastConfig, OACCNetConfig])
def test_networks_without_channels(kind):
    """Torch would print a warning about each of their layers."""
    config = json.loads(json.dumps(vars(kind())))
    for name in (name for name in config if name.endswith("channels") and name != "edge_channels"):
        none = [0] * len(config[name]) if isinstance(config[name], list) else 0
        with pytest.raises(BadField, match=f"{name}: 0, expected 1 to 2048"):
            parse_config(kind, json.dumps({**config, name: none}))


@given(value=ANYTHING | ARRAYS)
def test_fields(value):
    for parse in (as_number, as_range, as_camera):
        survives(parse, value, allowed=BadField)
