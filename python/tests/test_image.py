"""Images and files in them, beside the modules os and io over the same tree."""

import errno
import io
import os
import stat

import packfs
import pytest
from conftest import files_of


def test_metadata_is_that_of_the_tree(image, tree):
    for path in [*files_of(tree), "docs", "empty", "docs/link", "docs/up"]:
        for follow in (True, False):
            ours, theirs = image.stat(path, follow_symlinks=follow), os.stat(tree / path, follow_symlinks=follow)
            assert ours.st_mode == theirs.st_mode, path
            assert (ours.st_uid, ours.st_gid) == (theirs.st_uid, theirs.st_gid)
            assert int(ours.st_mtime) == int(theirs.st_mtime)
            if stat.S_ISREG(ours.st_mode):
                assert ours.st_size == theirs.st_size
    assert image.stat("docs/link").kind == "file"
    assert image.stat("docs/link", follow_symlinks=False).is_symlink()
    assert image.stat("").is_dir() and image.stat("/").path == ""
    assert image.readlink("docs/link") == "hello.txt"


def test_lists_as_os_does(image, tree):
    assert sorted(image.listdir("docs")) == sorted(os.listdir(tree / "docs"))
    assert [entry.name for entry in image.scandir("docs")] == image.listdir("docs")
    assert image.listdir("empty") == [] and len(image.listdir("docs/up")) == 300
    found = {entry.path: entry for entry in image.find()}
    assert sorted(path for path, entry in found.items() if entry.is_file()) == files_of(tree)
    assert {entry.path for entry in image.find(maxdepth=1)} == set(os.listdir(tree))
    assert repr(found["docs/hello.txt"]) == '<packfs.Entry "docs/hello.txt" file of 12 bytes>'

    def walked(walk, root):
        return sorted((os.path.relpath(at, root) if at else ".", sorted(dirs), sorted(names)) for at, dirs, names in walk)

    # os.walk() counts links to directories among directories.
    theirs = [
        (at, [d for d in dirs if not os.path.islink(f"{at}/{d}")], names + [d for d in dirs if os.path.islink(f"{at}/{d}")])
        for at, dirs, names in os.walk(tree)
    ]
    assert walked(image.walk(), ".") == walked(theirs, tree)
    pruned = []
    for at, dirs, _ in image.walk():
        pruned.append(at)
        dirs.clear()
    assert len(pruned) == 1


def test_walks_on_after_removed_names(image):
    visited = []
    for at, dirs, _ in image.walk():
        visited.append(at)
        dirs[:] = [name for name in dirs if name != "docs"]
    assert "many" in visited and "docs" not in visited


def test_reads_every_file(image, tree):
    for path in files_of(tree):
        contents = (tree / path).read_bytes()
        assert image.read(path) == contents, path
        assert image.read(path, 2, 10) == contents[2:10]
        assert image.read(path, -4) == contents[-4:]
        assert image.read(path, 5, 2) == b""
    assert image.read("docs/link") == image.read("/docs/./hello.txt") == b"hello\nworld\n"
    assert isinstance(image.read("docs/empty"), bytes)


def test_errors_have_numbers(image):
    cases = [
        (FileNotFoundError, errno.ENOENT, lambda: image.read("docs/none")),
        (FileNotFoundError, errno.ENOENT, lambda: image.read("docs/broken")),
        (FileNotFoundError, errno.ENOENT, lambda: image.listdir("none")),
        (IsADirectoryError, errno.EISDIR, lambda: image.read("docs")),
        (IsADirectoryError, errno.EISDIR, lambda: image.open("docs")),
        (NotADirectoryError, errno.ENOTDIR, lambda: image.listdir("docs/hello.txt")),
        (NotADirectoryError, errno.ENOTDIR, lambda: image.read("docs/hello.txt/x")),
        (OSError, errno.ELOOP, lambda: image.read("docs/loop")),
        (OSError, errno.EINVAL, lambda: image.readlink("docs")),
        (OSError, errno.EROFS, lambda: image.open("docs/hello.txt", "wb")),
    ]
    for kind, number, call in cases:
        with pytest.raises(kind) as raised:
            call()
        assert raised.value.errno == number, raised.value
    with pytest.raises(FileNotFoundError) as raised:
        image.read("docs/helo.txt")
    assert "docs/hello.txt" in raised.value.__notes__[0]
    for wrong in (ValueError, lambda: image.read("docs/../many")), (TypeError, lambda: image.read(3)):
        with pytest.raises(wrong[0]):
            wrong[1]()
    assert not image.exists("docs/broken") and not image.exists("docs/loop") and image.exists("docs/link")
    assert image.is_dir("docs/up") and not image.is_file("docs/up") and image.is_file("docs/link")


def test_refuses_what_is_no_image(tmp_path):
    with pytest.raises(FileNotFoundError):
        packfs.open(tmp_path / "none")
    (tmp_path / "text").write_text("no image " * 100)
    with pytest.raises(packfs.UnsupportedImage) as raised:
        packfs.open(tmp_path / "text")
    assert raised.value.errno == errno.EOPNOTSUPP and isinstance(raised.value, packfs.Error)
    with pytest.raises(ValueError):
        packfs.open(tmp_path)
    with pytest.raises(TypeError):
        packfs.open(5)
    with pytest.raises(TypeError, match="jobs"):
        packfs.open(tmp_path / "text", jobs="many")
    with pytest.raises(ValueError, match="max_entries"):
        packfs.open(tmp_path / "text", limits={"entries": 1})


def test_limits_are_kept(packed):
    with packfs.open(packed, limits={"max_entries": 10}) as image:
        with pytest.raises(packfs.LimitExceeded):
            image.find()
    with packfs.open(packed, limits={"max_bytes": 5}) as image:
        for read in (image.read, lambda path: image.read_many([path])):
            with pytest.raises(packfs.LimitExceeded):
                read("docs/hello.txt")
    assert packfs.open(packed, limits="none").find()


def test_a_closed_image_is_refused_and_its_files_live_on(packed):
    image = packfs.open(packed)
    file = image.open("big/text")
    with image:
        assert image.format in ("squashfs", "erofs") and not image.closed and image.warnings == []
    assert image.closed and "closed" in repr(image)
    with pytest.raises(ValueError):
        image.read("docs/hello.txt")
    assert file.read(6) == b"line 0"


def test_files_are_those_of_io(image, tree):
    ours, theirs = image.open("big/text"), open(tree / "big/text", "rb")
    assert isinstance(ours, io.RawIOBase) and ours.readable() and ours.seekable() and not ours.writable()
    assert ours.size == os.path.getsize(tree / "big/text") and ours.name == "big/text"
    for where in ((0, 0), (100_000, 0), (-7, 2), (3, 1), (10**9, 0)):
        assert ours.seek(*where) == theirs.seek(*where) == ours.tell()
        assert ours.read(5000) == theirs.read(5000)
    ours.seek(0), theirs.seek(0)
    for _ in range(3):
        assert ours.readline() == theirs.readline()
    assert ours.readlines(1000) == theirs.readlines(1000)
    buffers = bytearray(50_000), bytearray(50_000)
    assert ours.readinto(buffers[0]) == theirs.readinto(buffers[1]) and buffers[0] == buffers[1]
    shorts = memoryview(bytearray(998)).cast("h")
    assert ours.readinto(shorts) == 998 and shorts.tobytes() == theirs.read(998)
    for wrong in (bytes(9), memoryview(bytearray(9))[::2], 9):
        with pytest.raises(TypeError):
            ours.readinto(wrong)
    assert ours.tell() == theirs.tell() and ours.readinto(bytearray()) == 0
    assert ours.read() == theirs.read() and ours.read(1) == b""
    assert ours.readinto(buffers[0]) == 0
    assert ours.read_at(3, 4) == b"e 0 " and ours.peek() == b""
    for wrong in (lambda: ours.seek(-1), lambda: ours.write(b"x")):
        with pytest.raises(OSError):
            wrong()
    with image.open("docs/hello.txt", "r", encoding="utf-8") as text:
        assert list(text) == ["hello\n", "world\n"]
    ours.close()
    with pytest.raises(ValueError):
        ours.read()


def test_reads_images_in_file_objects(packed, tree):
    with open(packed, "rb") as file:
        image = packfs.open(file)
        assert image.read("big/text") == (tree / "big/text").read_bytes()
        names = files_of(tree)
        assert image.read_many(names) == [(tree / name).read_bytes() for name in names]
        image.close()
    held = io.BytesIO(packed.read_bytes())
    assert packfs.open(held).read("docs/hello.txt") == b"hello\nworld\n"

    class Failing(io.BytesIO):
        def read(self, size=-1):
            if self.tell() > 4096:
                raise RuntimeError("the line is dead")
            return super().read(size)

    with pytest.raises(OSError, match="the line is dead"):
        packfs.open(Failing(packed.read_bytes())).read_many(names)


def test_damage_is_an_error_with_a_number(packed, tmp_path, tree):
    data = bytearray(packed.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 40_000] = bytes(40_000)
    damaged = tmp_path / "damaged.img"
    damaged.write_bytes(data)
    names = files_of(tree)
    with packfs.open(damaged) as image:
        results = image.read_many(names, on_error="return")
        errors = [result for result in results if isinstance(result, Exception)]
        # LZ4 may decode damaged blocks; what is neither is damage that was missed.
        wrong = [r for r, n in zip(results, names) if isinstance(r, bytes) and r != (tree / n).read_bytes()]
        assert errors or wrong
        for error in errors:
            assert isinstance(error, packfs.CorruptImage) and error.errno == errno.EUCLEAN
        if errors:
            with pytest.raises(packfs.CorruptImage):
                image.read_many(names)
    report = packfs.check(damaged)
    assert report["sound"] == (not errors) and len(report["findings"]) >= report["errors"]


def test_counts_what_it_reads(image):
    before = image.counters["decodes"]
    image.read_many([f"many/{index:03}.bin" for index in range(300)])
    assert image.counters["decodes"] > before
