"""Documents cannot drift: commands, options, examples, links and lists match the code.

`python tests/test_docs.py` regenerates the tables: the list of files and the import table in
contributing.md, and the scores in the README.
"""

import ast
import dataclasses
import re
import shlex
import shutil
from pathlib import Path

import lightfield_files
import pytest
import typer.main
from rich.text import Text
from test_imports import PACKAGE, ROWS

import oaccdepth
from oaccdepth import cli, errors, readers
from oaccdepth.evaluation.scores import published_scores
from oaccdepth.networks import checkpoint
from oaccdepth.version import __version__

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
COMMANDS = ROOT / "docs" / "commands.md"
API = ROOT / "docs" / "api.md"
CONTRIBUTING = ROOT / "docs" / "contributing.md"
DOCUMENTS = [README, *sorted((ROOT / "docs").glob("*.md")), *sorted(ROOT.glob("weights/*.md"))]

DEMO_SCENE = "oaccdepth-demo/still-life"  # examples that use it are run
INSTALL = "pip install -c constraints.txt . && oaccdepth demo"
TEST = 'pip install -c constraints.txt -e ".[test]" && pytest'
SHELL = ("bash", "shell", "sh", "console")
# Of every command, and of other programs
FOREIGN = {"--help", "--version", "--all-files", "--index-url", "--nproc-per-node"}
FOREIGN |= {"--cases", "--first", "--memory", "--seconds"}  # of tools/fuzz.py
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")


# What the documents say


def fences(path):
    """(language, text) of each fenced block, without its indentation."""
    pattern = re.compile(r"^( *)```(\w*)\n(.*?)^ *```", re.M | re.S)
    for indent, language, text in pattern.findall(path.read_text(encoding="utf-8")):
        yield language, re.sub(f"^{indent}", "", text, flags=re.M)


def prose(path):
    """The text without fenced blocks."""
    return re.sub(r"^ *```.*?^ *```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)


def calls(text):
    """The words after `oaccdepth` in each line that calls it; a trailing backslash continues it."""
    for line in re.sub(r"\\\n", " ", text).splitlines():
        called = re.search(r"(?:^|\s)oaccdepth ([a-z-][^|;&>]*)", line)
        if called:
            yield shlex.split(called[1], comments=True)


def examples(languages):
    """(file name, words) of each call in the blocks of these languages."""
    return [
        (path.name, words)
        for path in DOCUMENTS
        for language, text in fences(path)
        if language in languages
        for words in calls(text)
    ]


def sections(path):
    """Second-level heading -> text."""
    parts = re.split(r"^## (.+)$", path.read_text(encoding="utf-8"), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def anchors(path):
    """The possible targets of a link: headings, as GitHub names them."""
    titles = re.findall(r"^#+ (.+)$", prose(path), flags=re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


# What the program says


def leaves(command=None, words=()):
    """(words, command) of every command, including those in groups."""
    command = command or typer.main.get_command(cli.app)
    if not hasattr(command, "commands"):  # not isinstance, because typer may bundle its own click
        yield words, command
        return
    for name, child in command.commands.items():
        yield from leaves(child, (*words, name))


LEAVES = dict(leaves())


def options_of(command):
    return {
        name
        for parameter in command.params
        for name in (*parameter.opts, *parameter.secondary_opts)
        if name.startswith("--")
    }


def command_of(words):
    """The command that these words call, its name and the remaining words."""
    for count in (1, 2):
        if tuple(words[:count]) in LEAVES:
            return LEAVES[tuple(words[:count])], " ".join(words[:count]), words[count:]
    raise AssertionError(f"no such command: oaccdepth {' '.join(words)}")


# Commands and options


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_help_says_all_it_is_given(words):
    """Rich mistakes [px] for a style and drops it."""
    texts = [LEAVES[words].help, *(parameter.help for parameter in LEAVES[words].params)]
    for text in texts:
        assert text is None or Text.from_markup(text).plain == text


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_every_command_is_documented_with_its_options(words):
    written = sections(COMMANDS)
    assert words[0] in written, f"docs/commands.md has no section ## {words[0]}"
    section = written[words[0]]
    assert f"oaccdepth {' '.join(words)}" in section
    shared = next(text for title, text in written.items() if title.startswith("Options"))
    named = set(OPTION.findall(section)) | set(OPTION.findall(shared))
    assert options_of(LEAVES[words]) <= named


@pytest.mark.parametrize(("start", "option"), [("estimate", "--precision"), ("read", "--views")])
def test_shared_options_name_the_commands_that_take_them(start, option):
    named = re.search(rf"^How to {start}.*\((`.*`)\):$", COMMANDS.read_text(), re.M)[1]
    taking = {words[0] for words, command in LEAVES.items() if option in options_of(command)}
    assert set(re.findall(r"`(\w+)`", named)) == taking


def test_documented_commands_and_options_exist():
    for title, text in sections(COMMANDS).items():
        own = [command for words, command in LEAVES.items() if words[0] == title]
        assert own or title.startswith("Options"), f"docs/commands.md: no such command: {title}"
        known = {name for command in own or LEAVES.values() for name in options_of(command)}
        assert set(OPTION.findall(text)) <= known | FOREIGN, title


def test_every_option_named_in_prose_exists():
    known = {name for command in LEAVES.values() for name in options_of(command)}
    for tool in (ROOT / "tools").glob("*.py"):  # documents also name options of our tools
        known |= set(re.findall(r"\"(--[a-z-]+)\"", tool.read_text(encoding="utf-8")))
    for path in DOCUMENTS:
        assert set(OPTION.findall(prose(path))) - known - FOREIGN == set(), path.name


def test_extras_exist():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    table = re.search(r"^\[project.optional-dependencies\]\n(.*?)^\[", project, re.M | re.S)[1]
    extras = set(re.findall(r"^(\w+) = ", table, flags=re.M))
    for path in DOCUMENTS:
        named = re.findall(
            r"`\[([a-z,]+)\]`|[\w.]\[([a-z,]+)\]\"", path.read_text(encoding="utf-8")
        )
        assert {name for pair in named for name in "".join(pair).split(",")} <= extras, path.name


def test_readme_is_short():
    assert len(README.read_text(encoding="utf-8").split()) < 900


def test_readme_lists_every_command():
    rows = re.findall(r"^\| `oaccdepth (\w+)", README.read_text(encoding="utf-8"), flags=re.M)
    assert rows and set(rows) == set(cli.COMMANDS)


# Examples


@pytest.mark.parametrize(("name", "words"), examples(SHELL), ids=lambda part: str(part))
def test_shell_examples_parse(name, words):
    command, title, rest = command_of(words)
    with command.make_context(title, list(rest)):
        pass


@pytest.mark.parametrize(("name", "words"), examples(("", "text")), ids=lambda part: str(part))
def test_synopses_name_what_exists(name, words):
    command, _, rest = command_of(words)
    assert set(OPTION.findall(" ".join(rest))) <= options_of(command)


def write_folder(place, views, name):
    """A folder of views."""
    place.mkdir()
    lightfield_files.pairs(place, views, name)


# Files that examples use, and a small stand-in for each
STAND_INS = {
    DEMO_SCENE: lambda place, town: shutil.copytree(town, place),
    "my-array": lambda place, town: write_folder(
        place, readers.read(town).views[2:7], "view_{:02d}_{:02d}.png"
    ),
    "IMG_0001__Decoded.mat": lambda place, town: lightfield_files.matlab_73(
        place, {"LF": lightfield_files.decoded(lightfield_files.vignetted(size=(32, 40))[0])}
    ),
    "viewpoints_15px": lambda place, town: write_folder(
        place, lightfield_files.vignetted(size=(32, 40))[0], "{:02d}_{:02d}.png"
    ),
}


def steps(path):
    """The examples of a document in order: ("python", text), or ("run", words of a call).

    Only calls that use a file with a stand-in are included.
    """
    found = []
    for language, text in fences(path):
        if language == "python":
            found.append(("python", text))
        elif language in SHELL:
            found += [("run", words) for words in calls(text) if set(words) & set(STAND_INS)]
    return found


WITH_STEPS = [path for path in DOCUMENTS if steps(path)]


@pytest.mark.parametrize("path", WITH_STEPS, ids=lambda path: path.name)
def test_examples_run(path, run, scene_folder, tmp_path, monkeypatch):
    """One after the other, in one folder and one namespace, as a reader would."""
    monkeypatch.chdir(tmp_path)
    text = path.read_text(encoding="utf-8")
    for name, make in STAND_INS.items():
        if name in text:
            place = tmp_path / name
            place.parent.mkdir(exist_ok=True)
            make(place, scene_folder)
    names = {}
    for kind, example in steps(path):
        if kind == "python":
            exec(compile(example, path.name, "exec"), names)
        else:
            result = run(*example)
            assert result.exit_code == 0, f"oaccdepth {' '.join(example)}: {result.stderr}"


def test_readme_python_example_is_five_lines():
    (block,) = (text for language, text in fences(README) if language == "python")
    assert len([line for line in block.splitlines() if line]) == 5


def test_python_examples_are_python():
    for path in DOCUMENTS:
        for language, text in fences(path):
            if language == "python":
                ast.parse(text, path.name)


def test_set_up_commands():
    blocks = [text.strip() for language, text in fences(README) if language == "bash"]
    assert INSTALL in blocks and TEST in blocks
    assert TEST in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


# The API


def test_api_reference_names_everything_public():
    """Every public name of the package is in api.md, with all its fields."""
    text = API.read_text(encoding="utf-8")
    for name in oaccdepth.__all__:
        assert re.search(rf"`(?:oaccdepth\.)?{name}\b", text), name
        offered = getattr(oaccdepth, name)
        for field in dataclasses.fields(offered) if dataclasses.is_dataclass(offered) else ():
            assert re.search(rf"\b{field.name}\b", text), f"{name}.{field.name}"
        for attribute, value in vars(offered).items() if isinstance(offered, type) else ():
            is_public = isinstance(value, property) or callable(value)
            assert attribute.startswith("_") or not is_public or attribute in text, attribute


def test_api_reference_lists_every_error():
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", API.read_text(encoding="utf-8"), flags=re.M)
    own = [each for each in vars(errors).values() if isinstance(each, type)]
    own = [each for each in own if each.__bases__[0] is errors.OaccDepthError]
    assert rows == [(each.__name__, each.__bases__[1].__name__) for each in own]


# Links


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_relative_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, place = target.partition("#")
        found = (path.parent / file).resolve() if file else path
        assert found.exists(), f"{path.name}: {target}"
        assert found.is_relative_to(ROOT), f"{path.name}: {target} is outside the repository"
        assert not place or place in anchors(found), f"{path.name}: {target}"


def test_index_links_every_document():
    linked = set(
        re.findall(r"\]\(([\w-]+\.md)", (ROOT / "docs/index.md").read_text(encoding="utf-8"))
    )
    there = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert linked == there - {"index.md"}


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.png")), ids=lambda path: path.name)
def test_pictures_are_small(path):
    assert path.stat().st_size < 300_000


# Lists


def first_sentence(path):
    """The first sentence of a module's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert text, f"{path}: has no docstring"
    return re.split(r"\.(?= [A-Z])", text.splitlines()[0])[0].rstrip(".").replace("|", "\\|")


def file_table():
    """Every module of the package, in the order of the import rule."""
    lines = ["| file | what it is |", "|---|---|"]
    for module in (name for modules in ROWS.values() for name in modules):
        single = PACKAGE / f"{module}.py"
        files = [single] if single.is_file() else sorted((PACKAGE / module).rglob("*.py"))
        for path in files:
            lines.append(f"| `{path.relative_to(PACKAGE)}` | {first_sentence(path)} |")
    return "\n".join(lines)


def row_table():
    """The import rule."""
    libraries = {
        "1": "standard library",
        "2": "numpy",
        "3": "row 2, image and file libraries, numba; torch in `evidence` only",
        "4": "torch; never `LightField`, like `evidence`",
        "5": "torch",
        "6": "torch in `training` only",
        "7": "Ray inside the function that needs it",
        "8": "everything; the only ones to use typer and rich",
    }
    lines = ["| row | modules, from left to right | may use |", "|---|---|---|"]
    for row, modules in ROWS.items():
        names = ", ".join(f"`{name}`" for name in modules)
        lines.append(f"| {row} | {names} | {libraries[row]} |")
    return "\n".join(lines)


METHODS = ("OccCasNet", "OACC-Net", "DistgDisp", "FastLFnet", "EPINET-Lite")
SCENES = ("backgammon", "stripes", "cotton", "pyramids", "sideboard")
SCORES = ("mse_100", "badpix_0070")
# For 9x9 views of 512x512 px: ours by `oaccdepth benchmark`, the others from the paper.
TIMES = {
    "OACC-Net": "0.034 s, GPU",
    "FastLFnet": "0.62 s, GPU",
    "**oaccdepth**": "2 to 3 s, CPU",
}


def score_table():
    """Mean scores stored in the bundled weights, next to those of published methods."""
    own = checkpoint.read_scores(checkpoint.read_metadata(ROOT / "weights" / "fast.safetensors"))
    methods = {name: published_scores()[name] for name in METHODS} | {"**oaccdepth**": own}
    means = {
        method: [sum(scores[scene][name] for scene in SCENES) / len(SCENES) for name in SCORES]
        for method, scores in methods.items()
    }
    lines = [f"Means over {', '.join(SCENES[:-1])} and {SCENES[-1]}; smaller is better:", ""]
    lines += ["| method | MSE x100 | BadPix 0.07 | time |", "|---|---:|---:|---|"]
    for method, (squared, bad) in sorted(means.items(), key=lambda item: item[1]):
        lines.append(f"| {method} | {squared:.2f} | {bad:.2f} % | {TIMES.get(method, '')} |")
    return "\n".join(lines)


TABLES = {
    "files": (CONTRIBUTING, file_table),
    "rows": (CONTRIBUTING, row_table),
    "scores": (README, score_table),
}


def between(name):
    return re.compile(rf"(?<=<!-- {name}: begin -->\n).*?(?=<!-- {name}: end -->)", re.S)


@pytest.mark.parametrize("name", TABLES)
def test_generated_tables_are_true(name):
    path, make = TABLES[name]
    found = between(name).search(path.read_text(encoding="utf-8"))
    assert found, f"{path.name} has lost its marks <!-- {name}: begin --> and end"
    assert found[0] == make() + "\n", "run: python tests/test_docs.py"


def test_every_module_is_in_the_list():
    listed = set(re.findall(r"^\| `([\w/]+\.py)`", file_table(), flags=re.M))
    assert listed == {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py")}


# Versions


def test_changelog_and_package_agree_on_the_version():
    changelog = (ROOT / "docs" / "changelog.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d$", changelog, flags=re.M)
    released = re.findall(r"^## (?!\[Unreleased\]$)", changelog, flags=re.M)
    assert len(headings) == len(released)
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'\nversion = "{__version__}"\n' in project and headings[0] == __version__


def test_markers_are_documented():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    markers = re.search(r"^markers = \[(.*?)^\]", project, flags=re.M | re.S)[1]
    text = CONTRIBUTING.read_text(encoding="utf-8")
    written = re.findall(r"^\| `(\w+)` \| .* \| `pytest -m \1`", text, flags=re.M)
    assert written == re.findall(r'"(\w+):', markers)


def write_tables():
    """Regenerate the tables."""
    for name, (path, make) in TABLES.items():
        text = path.read_text(encoding="utf-8")
        table = make() + "\n"
        path.write_text(between(name).sub(lambda _, table=table: table, text), encoding="utf-8")


if __name__ == "__main__":
    write_tables()
