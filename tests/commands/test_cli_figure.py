"""`oaccdepth figure`: figures and animations from the command line."""

import imageio.v3 as imageio
import pytest


def test_figure_of_a_result(run, scene_folder, result_folder, tmp_path):
    output = tmp_path / "figure.png"
    done = run("figure", result_folder, "--input", scene_folder, "-o", output, "--columns", 3)
    assert (done.exit_code, done.stdout, done.stderr) == (0, f"{output}\n", "")
    picture = imageio.imread(output)
    assert picture.shape[1] > 3 * 640 and picture.shape[2] == 3  # six panels, masks among them


def test_figure_of_a_light_field_as_pdf(run, scene_folder, weights_file, tmp_path):
    output = tmp_path / "figure.pdf"
    done = run(
        "figure", scene_folder, "-o", output, "--weights", weights_file, "--iterations", 2,
        "--panel", "passes", "--panel", "error", "--colormap", "turbo", "--range=-2:2",
        "--error-range", 0.5, "--panel-width", 128,
    )  # fmt: skip
    assert done.exit_code == 0
    assert output.read_bytes().startswith(b"%PDF-")


def test_result_alone_has_fewer_panels(run, result_folder, tmp_path):
    output = tmp_path / "figure.png"
    done = run("figure", result_folder, "-o", output, "--panel-width", 64, "--quiet")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
    narrow = imageio.imread(output)
    assert narrow.shape[1] < 400
    done = run("figure", result_folder, "-o", output, "--panel", "view", "--overwrite")
    assert done.stderr == "error: --panel view: needs a light field (--input).\n"


def test_parallax_needs_no_estimate(run, scene_folder, tmp_path):
    output = tmp_path / "trip.gif"
    done = run("figure", scene_folder, "-o", output, "--animate", "parallax", "--fps", 10)
    assert (done.exit_code, done.stdout) == (0, f"{output}\n")
    assert imageio.imread(output, index=None).shape[1:3] == (48, 64)


def test_refocus_animation(run, scene_folder, result_folder, tmp_path):
    for number, more in enumerate(([], ["--range=-1:1"])):
        output = tmp_path / f"focus{number}.gif"
        done = run(
            "figure", result_folder, "--input", scene_folder, "-o", output, "--animate", "refocus",
            *more,
        )  # fmt: skip
        assert (done.exit_code, done.stdout) == (0, f"{output}\n")
        assert imageio.imread(output, index=None).shape[0] == 24


def test_animation_without_views(run, result_folder, tmp_path):
    done = run("figure", result_folder, "-o", tmp_path / "trip.gif", "--animate", "parallax")
    assert (done.exit_code, done.stderr) == (
        1,
        "error: --animate parallax: needs the views; the light field town is not next to "
        f"{result_folder}, so there are no views. Give it with --input.\n",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "a.svg"], "a.svg: a figure must end in .png or .pdf."),
        (["-o", "a.png", "--animate", "parallax"], "a.png: an animation must end in .gif or .mp4."),
        (
            ["-o", "a.gif", "--animate", "dance"],
            "--animate dance: no such animation. Use parallax or refocus.",
        ),
        (["-o", "a.png", "--error-range", "0"], "--error-range 0.0: expected more than 0 px."),
    ],
)
def test_bad_settings_are_refused_at_once(run, scene_folder, arguments, message):
    done = run("figure", scene_folder, *arguments)
    assert (done.exit_code, done.stderr) == (1, f"error: {message}\n")
