"""The import rule: a room uses only rows above its own, or what stands left of it in its row."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import oaccdepth

PACKAGE = Path(oaccdepth.__file__).parent

# From top to bottom: a room may use the rows above, and the rooms to its left in its own row.
ROWS = {
    "1": ["printable", "errors", "options", "progress", "version"],
    "2": ["compiling", "lightfield", "disparity", "files"],
    "3": ["readers", "writers", "evidence", "rendering"],
    "4": ["networks"],
    "5": ["estimation"],
    "6": ["evaluation", "looking", "training"],
    "7": ["pipeline", "batch", "benchmark"],
    "8": ["commands", "cli", "__init__", "__main__"],
}
TORCH = {"evidence", "networks", "estimation", "training", "benchmark"}  # import torch at the top
USER = "8"  # the row that talks to the user
HEAVY = {"torch", "h5py", "scipy", "ray", "matplotlib", "onnx", "onnxruntime", "numba"}

FILES = sorted(path for path in PACKAGE.rglob("*.py"))
MODULES = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in FILES}


def module_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def row_of(module):
    return next(row for row, modules in ROWS.items() if module in modules)


def allowed(module):
    """Modules that this one may import."""
    row = row_of(module)
    above = [modules for name, modules in ROWS.items() if name < row]
    left = ROWS[row][: ROWS[row].index(module)]
    return {module, *left, *(name for modules in above for name in modules)}


def imported(path):
    """Every dotted name that a file imports, even inside functions and for type checking."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: import absolutely"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_every_module_has_a_row():
    assert {name for modules in ROWS.values() for name in modules} == MODULES


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_upwards_only(path):
    module = module_of(path)
    used = {name.split(".")[1] for name in imported(path) if name.startswith("oaccdepth.")}
    # If it is not a module, it is a name in the package itself, as in `from oaccdepth import read`.
    assert (used & MODULES) - allowed(module) == set()
    if row_of(module) != USER:
        assert used - MODULES == set(), "import from the module itself, not from the package"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_each_row_uses_its_own_libraries(path):
    row = row_of(module_of(path))
    names = list(imported(path))
    roots = {name.partition(".")[0] for name in names}
    if row == "1":
        assert roots - {"oaccdepth", "__future__"} <= set(sys.stdlib_module_names)
    if row == "2":
        assert roots - {"oaccdepth", "numpy", "justpfm", "numba"} <= set(sys.stdlib_module_names)
    if row < "7":  # from row 7 on, functions import it, which the linter checks
        assert module_of(path) in TORCH or "torch" not in roots
    if row != USER:
        assert not roots & {"typer", "rich"}, "only commands talk to the user"
    if module_of(path) in ("evidence", "networks"):
        assert "oaccdepth.lightfield.LightField" not in names


def test_help_does_not_import_what_is_heavy():
    # The help page of every command, in a separate process.
    program = (
        "import contextlib, io, sys\n"
        "from oaccdepth import cli\n"
        "for words in [[], *([name] for name in cli.COMMANDS)]:\n"
        "    with contextlib.redirect_stdout(io.StringIO()) as page:\n"
        "        with contextlib.suppress(SystemExit):\n"
        "            cli.app([*words, '--help'], prog_name='oaccdepth')\n"
        "    assert 'Usage' in page.getvalue(), words\n"
        f"print(sorted({HEAVY!r} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=PACKAGE.parent
    )
    assert done.stderr == ""
    assert done.stdout == "[]\n"


def test_the_public_names_are_there():
    assert oaccdepth.__all__ == sorted(oaccdepth.__all__)
    for name in oaccdepth.__all__:
        assert getattr(oaccdepth, name).__doc__, name
    with pytest.raises(AttributeError, match="module 'oaccdepth' has no attribute 'depth'"):
        oaccdepth.depth  # noqa: B018


def test_estimate_is_loaded_on_first_use():
    from oaccdepth.estimation import inference

    assert oaccdepth.estimate is inference.estimate


def test_every_command_is_registered():
    from oaccdepth import cli

    commands = {path.stem for path in (PACKAGE / "commands").glob("*.py")}
    assert commands - {"__init__"} == set(cli.COMMANDS)
