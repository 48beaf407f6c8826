from pathlib import Path, PureWindowsPath

import pytest

from oaccdepth.files.shareable import shareable


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        ("/home/ada/scenes/town: 2 views are missing.", "town: 2 views are missing."),
        ("/home/ada/my light fields/town: damaged.", "town: damaged."),
        ("not scored: /data/my maps/a b.pfm: no such file.", "not scored: a b.pfm: no such file."),
        ("cannot read /home/ada/x y", "cannot read x y"),
        ('File "/home/ada/a b.py", line 3', 'File "a b.py", line 3'),
        ("C:\\Users\\Ada L\\town: damaged.", "town: damaged."),
        ("~/scenes/town", "town"),
        ("/home/ada: bert/town: damaged", "ada: bert/town: damaged"),
        (
            "9 / 3 of 1/2, and/or f/2.0, training/boxes",
            "9 / 3 of 1/2, and/or f/2.0, training/boxes",
        ),
        ("https://example.org/a", "https://example.org/a"),
        ("file:///home/ada/x", "x"),
        (r"\\server\share\z", "z"),
        ("('/tmp/a/b.png')", "('b.png')"),
        ("</script>", "</script>"),
    ],
)
def test_of_a_path_the_name_stays(text, shared):
    assert shareable(text) == shared


def test_paths_anywhere():
    value = {"a": [Path("/home/ada/b"), ("/home/ada/c d", 3)], "d": PureWindowsPath("C:/Ada/e")}
    assert shareable(value) == {"a": ["b", ["c d", 3]], "d": "e"}
    assert shareable(Path("a/b")) == "a/b"
