"""Trees and images for the tests."""

import os
import random

import packfs
import pytest


def fill(folder):
    """Makes a tree with all kinds of entries that need no root."""
    chance = random.Random(1)
    for directory in ("docs/deep/er", "empty", "many", "big"):
        (folder / directory).mkdir(parents=True)
    (folder / "docs/hello.txt").write_text("hello\nworld\n")
    (folder / "docs/empty").write_bytes(b"")
    (folder / "docs/deep/er/leaf").write_bytes(b"leaf")
    (folder / os.fsdecode(b"docs/not\xff utf-8")).write_bytes(b"bytes")
    (folder / "docs/link").symlink_to("hello.txt")
    (folder / "docs/up").symlink_to("../many")
    (folder / "docs/broken").symlink_to("nowhere")
    (folder / "docs/loop").symlink_to("loop")
    for index in range(300):
        (folder / f"many/{index:03}.bin").write_bytes(chance.randbytes(40) * chance.randrange(200))
    (folder / "big/random").write_bytes(chance.randbytes(3 << 20))
    (folder / "big/text").write_bytes(b"".join(b"line %d of a long file\n" % n for n in range(400_000)))
    with open(folder / "big/hole", "wb") as file:
        file.truncate(1 << 20)
        file.seek(5 << 20)
        file.write(b"end")
    os.chmod(folder / "docs/hello.txt", 0o640)
    os.utime(folder / "docs/hello.txt", ns=(10**18 + 5 * 10**8, 10**18 + 5 * 10**8))


@pytest.fixture(scope="session")
def tree(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tree")
    fill(folder)
    return folder


@pytest.fixture(scope="session", params=["squashfs", "erofs"])
def packed(request, tree, tmp_path_factory):
    """Path of an image of the tree."""
    path = tmp_path_factory.mktemp("packed") / f"tree.{request.param}"
    packfs.pack(tree, path, format=request.param, codec="gzip:1" if request.param == "squashfs" else "lz4")
    return path


@pytest.fixture
def image(packed):
    with packfs.open(packed) as image:
        yield image


def files_of(folder):
    """Paths of all regular files, relative to a folder."""
    found = []
    for at, _, names in os.walk(folder):
        paths = (os.path.join(at, name) for name in names)
        found += [os.path.relpath(path, folder) for path in paths if not os.path.islink(path)]
    return sorted(found)
