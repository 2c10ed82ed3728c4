"""The filesystem of fsspec: its own conformance suites, and LocalFileSystem over the same tree."""

import io
import itertools
import json
import os
import pickle

import packfs
import pytest
from conftest import files_of

fsspec = pytest.importorskip("fsspec")

from fsspec.implementations.local import LocalFileSystem  # noqa: E402
from fsspec.tests.abstract import AbstractFixtures, AbstractGetTests  # noqa: E402

from packfs.fs import PackfsFileSystem  # noqa: E402


@pytest.fixture
def fs(packed):
    return fsspec.filesystem("packfs", fo=str(packed))


class TestGet(AbstractGetTests, AbstractFixtures):
    """fsspec's suite of get(): each scenario is built in a directory, and packed.

    The suites of copy, put, mv, pipe, and open (which has one test, of exclusive creation) write: what they would do
    is refused, see test_refuses_to_write.
    """

    @pytest.fixture
    def scenario(self, tmp_path, local_fs):
        def pack(build):
            folder = tmp_path / "scenario"
            folder.mkdir()
            build(local_fs, os.path.join, str(folder))
            packfs.pack(folder, tmp_path / "scenario.sqfs", verify=False)
            return "source"

        return pack

    @pytest.fixture
    def fs(self, tmp_path, scenario):
        # Opened at its first use, when the scenario is packed.
        class Late:
            def __getattr__(self, name):
                return getattr(PackfsFileSystem(str(tmp_path / "scenario.sqfs"), skip_instance_cache=True), name)

        return Late()

    @pytest.fixture
    def fs_path(self):
        return ""

    @pytest.fixture
    def fs_bulk_operations_scenario_0(self, scenario):
        return scenario(self._bulk_operations_scenario_0)

    @pytest.fixture
    def fs_glob_edge_cases_files(self, scenario):
        return scenario(self._glob_edge_cases_files)

    @pytest.fixture
    def fs_dir_and_file_with_same_name_prefix(self, scenario):
        return scenario(self._dir_and_file_with_same_name_prefix)

    @pytest.fixture
    def fs_10_files_with_hashed_names(self, scenario):
        return scenario(self._10_files_with_hashed_names)


    def test_get_directory_recursive(self):
        pytest.skip("the suite builds its tree in the filesystem: test_gets_files is the same")


def relative(value, root):
    """Results of LocalFileSystem with names relative to a root, and without what images do not hold."""
    if isinstance(value, str):
        return "" if value == root else value.removeprefix(root + "/")
    if isinstance(value, dict):
        hidden = ("created", "ino", "nlink")
        return {relative(k, root): relative(v, root) for k, v in value.items() if k not in hidden}
    if isinstance(value, (list, tuple)):
        return [relative(one, root) for one in value]
    return int(value) if isinstance(value, float) else value


def without_sizes_of_directories(value):
    if isinstance(value, dict):
        is_directory = value.get("type") == "directory" or value.get("destination") == "../many"
        return {k: without_sizes_of_directories(v) for k, v in value.items() if not (is_directory and k == "size")}
    return [without_sizes_of_directories(one) for one in value] if isinstance(value, list) else value


def in_order(value):
    if isinstance(value, list):
        return sorted((in_order(one) for one in value), key=repr)
    return value


QUESTIONS = [
    ("ls", "docs", {"detail": False}),
    ("ls", "docs", {"detail": True}),
    ("ls", "docs/up", {"detail": False}),
    ("info", "docs/hello.txt", {}),
    ("info", "docs/link", {}),
    ("info", "docs/up", {}),
    ("info", "docs", {}),
    ("find", "docs", {}),
    ("find", "docs", {"detail": True}),
    ("find", "docs", {"withdirs": True}),
    ("find", "docs", {"maxdepth": 1, "withdirs": True, "detail": True}),
    ("find", "docs/hello.txt", {}),
    ("find", "none", {}),
    ("glob", "docs/*", {}),
    ("glob", "docs/**", {}),
    ("glob", "**/*.bin", {}),
    ("glob", "many/00[0-4].b?n", {"detail": True}),
    ("glob", "docs/deep/*/", {}),
    ("glob", "docs/hello.txt", {}),
    ("du", "many", {}),
    ("du", "many", {"total": False}),
    ("exists", "docs/hello.txt", {}),
    ("exists", "docs/broken", {}),
    ("lexists", "docs/broken", {}),
    ("lexists", "none", {}),
    ("isdir", "docs", {}),
    ("isdir", "docs/link", {}),
    ("isfile", "docs/link", {}),
    ("isfile", "none", {}),
    ("islink", "docs/link", {}),
    ("size", "big/text", {}),
    ("cat", "docs/hello.txt", {}),
    ("cat", ["docs/hello.txt", "docs/empty"], {}),
    ("cat_file", "big/text", {"start": 5, "end": -7}),
    ("head", "big/text", {"size": 10}),
    ("tail", "big/text", {"size": 10}),
    ("read_text", "docs/hello.txt", {}),
    ("read_block", "big/text", {"offset": 100, "length": 50, "delimiter": b"\n"}),
]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda it: f"{it[0]}-{it[1]}-{'-'.join(it[2])}")
def test_answers_as_the_local_filesystem(fs, tree, question):
    method, path, options = question
    root, local = str(tree), LocalFileSystem()
    there = [f"{root}/{one}" for one in path] if isinstance(path, list) else f"{root}/{path}"
    theirs = relative(getattr(local, method)(there, **options), root)
    ours = relative(getattr(fs, method)(path, **options), "")
    ours, theirs = (in_order(without_sizes_of_directories(it)) for it in (ours, theirs))
    assert ours == theirs


def test_walks_as_the_local_filesystem(fs, tree):
    ours = sorted((at, sorted(dirs), sorted(files)) for at, dirs, files in fs.walk(""))
    theirs = LocalFileSystem().walk(str(tree))
    assert ours == sorted((relative(at, str(tree)), sorted(dirs), sorted(files)) for at, dirs, files in theirs)


@pytest.mark.parametrize("method", ["info", "ls", "cat_file", "open", "modified"])
def test_errors_are_those_of_the_local_filesystem(fs, tree, method):
    local = LocalFileSystem()
    for path in ("none", "docs/none", "docs"):
        outcomes = []
        for filesystem, at in ((fs, path), (local, f"{tree}/{path}")):
            try:
                getattr(filesystem, method)(at)
                outcomes.append(None)
            except OSError as error:
                outcomes.append((type(error), error.errno))
        assert outcomes[0] == outcomes[1], path


def test_opens_as_the_local_filesystem(fs, tree):
    local = LocalFileSystem()
    for mode in ("rb", "r", "rt"):
        with fs.open("docs/hello.txt", mode) as ours, local.open(f"{tree}/docs/hello.txt", mode) as theirs:
            assert ours.read() == theirs.read()
    with fs.open("docs/hello.txt", "r", encoding="ascii", newline="") as file:
        assert file.readline() == "hello\n"
    assert isinstance(fs.open("docs/hello.txt"), io.RawIOBase)


def test_refuses_to_write(fs, tmp_path):
    (tmp_path / "x").write_text("x")
    calls = [
        lambda: fs.open("new", "wb"),
        lambda: fs.open("new", "xb"),
        lambda: fs.open("docs/hello.txt", "ab"),
        lambda: fs.mkdir("new"),
        lambda: fs.makedirs("new/er"),
        lambda: fs.rmdir("empty"),
        lambda: fs.rm("docs", recursive=True),
        lambda: fs.rm_file("docs/hello.txt"),
        lambda: fs.copy("docs/hello.txt", "new"),
        lambda: fs.mv("docs/hello.txt", "new"),
        lambda: fs.put(str(tmp_path / "x"), "new"),
        lambda: fs.pipe("new", b"x"),
        lambda: fs.touch("new"),
    ]
    for call in calls:
        with pytest.raises(OSError) as raised:
            call()
        assert raised.value.errno == 30


def test_chains(packed, tree):
    urls = [f"packfs://docs/hello.txt::{packed}", f"packfs://docs/hello.txt::file://{packed}"]
    with fsspec.filesystem("memory").open("/shelf/a.img", "wb") as file:
        file.write(packed.read_bytes())
    urls.append("packfs://docs/hello.txt::memory://shelf/a.img")
    urls.append(f"packfs://docs/hello.txt::simplecache::file://{packed}")
    for url in urls:
        with fsspec.open(url, "rb") as file:
            assert file.read() == b"hello\nworld\n", url
    many = fsspec.open_files(f"packfs://many/00*.bin::{packed}", "rb")
    assert len(many) == 10
    mapper = fsspec.get_mapper(f"packfs://many::{packed}")
    assert len(mapper) == 300 and mapper["007.bin"] == (tree / "many/007.bin").read_bytes()
    assert set(mapper.getitems(["001.bin", "none"], on_error="omit")) == {"001.bin"}
    with pytest.raises(ValueError, match="packfs://PATH::IMAGE"):
        fsspec.filesystem("packfs")


def test_travels(fs, packed):
    again = pickle.loads(pickle.dumps(fs))
    assert again.cat_file("docs/hello.txt") == b"hello\nworld\n" and again == fs
    assert type(fs).from_json(fs.to_json()).ls("docs", detail=False) == fs.ls("docs", detail=False)
    assert json.loads(fs.to_json())["fo"] == str(packed)
    assert fsspec.filesystem("packfs", fo=str(packed)) is fs
    assert fs.checksum("docs/hello.txt") != fs.checksum("docs/empty") and fs.ukey("docs/empty")


def test_reads_ranges_together(fs, tree):
    names = files_of(tree)
    assert fs.cat(names) == {name: (tree / name).read_bytes() for name in names}
    answers = fs.cat_ranges(["docs/hello.txt", "none", "docs/hello.txt"], [0, 0, -3], [5, 5, None])
    assert answers[0] == b"hello" and isinstance(answers[1], FileNotFoundError) and answers[2] == b"ld\n"
    assert len(fs.cat("many", recursive=True)) == 300
    assert list(itertools.islice(fs.cat(["docs/empty", "none"], on_error="omit"), 2)) == ["docs/empty"]


def test_gets_files(fs, tmp_path):
    out = tmp_path / "out"
    fs.get("docs/deep", str(out), recursive=True)
    assert (out / "er/leaf").read_bytes() == b"leaf"
    fs.get("docs/deep", str(out), recursive=True)
    assert (out / "deep/er/leaf").read_bytes() == b"leaf"
    fs.get("docs/deep/", str(out / "new"), recursive=True)
    assert (out / "new/er/leaf").is_file() and not (out / "new/deep").exists()
