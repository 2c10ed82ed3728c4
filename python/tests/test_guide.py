"""Runs the examples of docs/guide/python.md, and those of the documentation of modules."""

import doctest
import importlib.util
import pathlib
import re

import packfs
import pytest

GUIDE = pathlib.Path(__file__).parents[2] / "docs/guide/python.md"

#: A block of Python; a comment before it names a module that it needs, and that may be missing.
BLOCK = re.compile(r"(?:<!-- needs: (?P<needs>\w+) -->\n)?```python\n(?P<code>.*?)```\n", re.DOTALL)


def test_the_guide_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for kind in ("cat", "dog"):
        (tmp_path / "photos" / kind).mkdir(parents=True)
        for number in range(20):
            (tmp_path / "photos" / kind / f"{number}.jpg").write_bytes(b"\xff\xd8" + bytes([number]) * 500)
    text = GUIDE.read_text()
    blocks = list(BLOCK.finditer(text))
    assert len(blocks) >= 8 and text.count("```python") == len(blocks)
    names, skipped = {}, []
    for block in blocks:
        needs = block["needs"]
        if needs and importlib.util.find_spec(needs) is None:
            skipped.append(needs)
            continue
        line = text[: block.start("code")].count("\n")
        exec(compile("\n" * line + block["code"], str(GUIDE), "exec"), names)
    print("skipped without", sorted(set(skipped)))


@pytest.mark.parametrize("module", ["packfs", "packfs.fs"])
def test_examples_of_modules_run(module, tmp_path, monkeypatch):
    if module == "packfs.fs":
        pytest.importorskip("fsspec")
    monkeypatch.chdir(tmp_path)
    packfs.pack({"etc/hostname": "example\n"}, "root.sqfs")
    results = doctest.testmod(importlib.import_module(module))
    assert results.attempted > 0 and results.failed == 0


def test_everything_public_is_documented():
    for name in packfs.__all__:
        thing = getattr(packfs, name)
        assert thing.__doc__, name
        if isinstance(thing, type):
            for member, value in vars(thing).items():
                if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                    assert value.__doc__, f"{name}.{member}"
