"""Many files and ranges at once."""

import random

import packfs
import pytest
from conftest import files_of


def test_reads_files_in_the_order_of_the_caller(image, tree):
    names = files_of(tree)
    random.Random(2).shuffle(names)
    names += names[:10]
    contents = [(tree / name).read_bytes() for name in names]
    assert image.read_many(names) == contents
    small = [name for name in names if name.startswith("many")]
    assert image.read_many(small) == [(tree / name).read_bytes() for name in small]
    entries = [entry for entry in image.find() if entry.is_file()]
    assert image.read_many(entries) == [(tree / entry.path).read_bytes() for entry in entries]
    assert image.read_many([]) == [] and image.read_many(["docs/empty"]) == [b""]


def test_one_thread_reads_the_same(packed, tree):
    names = files_of(tree)
    with packfs.open(packed, jobs=1, cache_bytes=0, readahead_bytes=0) as image:
        assert image.read_many(names) == [(tree / name).read_bytes() for name in names]


def test_reads_ranges(image, tree):
    chance, names = random.Random(3), files_of(tree)
    paths, starts, ends = [], [], []
    for _ in range(500):
        path = chance.choice(names)
        size = (tree / path).stat().st_size
        paths.append(path)
        starts.append(chance.choice([None, 0, -1, -100, chance.randrange(size + 2)]))
        ends.append(chance.choice([None, -1, chance.randrange(size + 2), size + 100]))
    contents = [(tree / path).read_bytes()[start:end] for path, start, end in zip(paths, starts, ends)]
    assert image.cat_ranges(paths, starts, ends) == contents
    assert image.cat_ranges(paths, 3, 10) == [(tree / path).read_bytes()[3:10] for path in paths]
    with pytest.raises(ValueError):
        image.cat_ranges(paths, [1, 2], 3)
    with pytest.raises(ValueError):
        image.cat_ranges(paths, 1, 3, on_error="ignore")


def test_errors_are_raised_or_returned(image):
    paths = ["docs/hello.txt", "none", "docs", "docs/link"]
    with pytest.raises(FileNotFoundError):
        image.read_many(paths)
    first, second, third, fourth = image.read_many(paths, on_error="return")
    assert first == fourth == b"hello\nworld\n"
    assert isinstance(second, FileNotFoundError) and isinstance(third, IsADirectoryError)


def test_positions_are_those_of_the_data(image):
    paths = [f"many/{index:03}.bin" for index in range(300)]
    positions = image.positions(paths)
    assert len(set(positions)) > 1 and image.positions(["docs/empty", "big/hole"])[0] == 0
    with pytest.raises(FileNotFoundError):
        image.positions(["none"])


def test_buffers_are_shared_without_a_copy(image, tree):
    (contents,) = image.read_many(["big/random"])
    view = memoryview(contents)
    assert view.readonly and view.obj is contents and bytes(view[:100]) == (tree / "big/random").read_bytes()[:100]
    numpy = pytest.importorskip("numpy")
    assert numpy.frombuffer(contents, dtype="u1")[-1] == contents[-1]
