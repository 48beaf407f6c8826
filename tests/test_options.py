"""Options: declared once, checked however they are given, and offered by the command line."""

from dataclasses import fields

import pytest

from oaccdepth import options
from oaccdepth.commands.shared.nesting import takes
from oaccdepth.errors import InvalidOption
from oaccdepth.options import (
    EstimateOptions,
    ReadOptions,
    RenderOptions,
    TrainOptions,
    WriteOptions,
)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ReadOptions(stride=0), "--stride 0: expected 1 or more."),
        (lambda: ReadOptions(views=(9, 1001)), "--views 9x1001: expected 1 to 1000."),
        (lambda: RenderOptions(size=(5000, 16)), "--size 5000x16: expected 1 to 4096."),
        (lambda: RenderOptions(scenes=10**12), "--scenes 1000000000000: expected 1 to 100000."),
        (lambda: ReadOptions(gamma=11), "--gamma 11: expected 0.1 to 10."),
        (lambda: ReadOptions(gamma=float("nan")), "--gamma nan: expected 0.1 to 10."),
        (lambda: ReadOptions(layout="stack"), "--layout stack: expected mosaic or lenslet."),
        (
            lambda: WriteOptions(colormap="parula"),
            "--colormap parula: expected viridis, cividis, magma, inferno, plasma, turbo or gray.",
        ),
        (lambda: EstimateOptions(tile=8), "--tile 8: expected 16 or more."),
        (
            lambda: EstimateOptions(precision="fp8"),
            "--precision fp8: expected auto, fp32, fp16 or bf16.",
        ),
        (lambda: TrainOptions(more_share=1.5), "--more-share 1.5: expected 0 to 1."),
    ],
)
def test_values_are_checked_in_the_api_too(make, message):
    with pytest.raises(InvalidOption) as caught:
        make()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("4:-4", "--range 4:-4: the ends are reversed. Use --range -4:4."),
        ("1:1", "--range 1:1: expected MIN:MAX, such as -2:1.5."),
        ("nan:1", "--range nan:1: expected MIN:MAX, such as -2:1.5."),
        ("0:inf", "--range 0:inf: expected MIN:MAX, such as -2:1.5."),
        ("1", "--range 1: expected MIN:MAX, such as -2:1.5."),
    ],
)
def test_ranges_that_are_none(text, message):
    with pytest.raises(InvalidOption) as caught:
        options.parse_range(text, "--range")
    assert str(caught.value) == message


def test_a_command_gets_the_objects(run_command):
    @takes(writing=WriteOptions, estimating=(EstimateOptions, "device"), reading=ReadOptions)
    def command(*, writing, estimating, reading):
        nonlocal given
        given = (writing, estimating, reading)

    given = None
    result = run_command(
        command, ["--format", "ply", "--format", "npy", "--range", "-1:2", "--use-views", "5x7"]
    )
    assert result.exit_code == 0
    assert given == (
        WriteOptions(formats=("ply", "npy"), value_range=(-1.0, 2.0)),
        EstimateOptions(),
        ReadOptions(use_views=(5, 7)),
    )
    run_command(command, ["--device", "cpu", "--no-check-orientation", "--flip-u", "--stride", "2"])
    assert given == (
        WriteOptions(),
        EstimateOptions(device="cpu"),
        ReadOptions(check_orientation=False, flip_u=True, stride=2),
    )
    assert run_command(command, ["--weights", "fast"]).exit_code == 2  # only the device is offered


def test_an_unknown_parameter_is_a_mistake_of_ours():
    with pytest.raises(TypeError, match="command has no parameter 'reading'"):

        @takes(reading=ReadOptions)
        def command():
            pass


@pytest.mark.parametrize("group", [ReadOptions, EstimateOptions, WriteOptions, TrainOptions])
def test_every_option_has_a_sentence_of_help(group):
    declared = options.declarations(group)
    assert declared.keys() <= {field.name for field in fields(group)}
    for flag, option in declared.values():
        assert flag.startswith("--") and option.help.endswith("."), flag


@pytest.fixture
def run_command():
    import typer
    from typer.testing import CliRunner

    def run(command, words):
        app = typer.Typer()
        app.command()(command)
        return CliRunner().invoke(app, words)

    return run
