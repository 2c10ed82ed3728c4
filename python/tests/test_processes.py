"""Threads, forks, spawned processes, pickles, signals, and images that disappear."""

import concurrent.futures
import io
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading

import packfs
import pytest
from conftest import files_of

#: Seconds until a process that hangs is a failure.
PATIENCE = 120


def in_child(work):
    """Runs `work` in the child of a fork, and fails unless it ends well."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(PATIENCE)
            work()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_threads_share_an_image(image, tree):
    names = files_of(tree)
    contents = {name: (tree / name).read_bytes() for name in names}

    def read(number):
        mine = names[number:] + names[:number]
        assert image.read_many(mine) == [contents[name] for name in mine]
        return all(image.read(name) == contents[name] for name in mine[:50])

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        assert all(threads.map(read, range(16)))


def test_other_threads_run_while_one_reads(image):
    """The GIL is free: a thread counts while another one waits for a slow file object."""
    started, finish = threading.Event(), threading.Event()
    held = io.BytesIO()

    class Slow(io.BytesIO):
        def read(self, size=-1):
            started.set()
            assert finish.wait(PATIENCE)
            return super().read(size)

    packfs_bytes = packfs.open(io.BytesIO(_small()))
    assert packfs_bytes.read("a") == b"1"
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        reading = threads.submit(lambda: packfs.open(Slow(_small())).read("a"))
        assert started.wait(PATIENCE)
        held.write(image.read("docs/hello.txt"))
        finish.set()
        assert reading.result() == b"1" and held.getvalue() == b"hello\nworld\n"


def _small():
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        packfs.pack({"a": "1"}, f"{folder}/a.sqfs")
        with open(f"{folder}/a.sqfs", "rb") as file:
            return file.read()


def test_children_of_a_fork_read_on(packed, tree):
    image, names = packfs.open(packed), files_of(tree)
    contents = [(tree / name).read_bytes() for name in names]
    file = image.open("big/text")
    assert image.read_many(names) == contents and file.read(1 << 20)

    def work():
        assert image.read_many(names) == contents
        assert file.read(100) == (tree / "big/text").read_bytes()[1 << 20 :][:100]
        assert image.open("big/text").read() == (tree / "big/text").read_bytes()
        assert packfs.pack(tree / "docs", f"{packed}.{os.getpid()}.sqfs", lossy=True)["files"]
        os.remove(f"{packed}.{os.getpid()}.sqfs")
        image.close()

    in_child(work)
    assert image.read_many(names) == contents


def test_forks_while_threads_read(packed, tree):
    """Locks that threads hold at the time of a fork stay locked in the child, which must not care."""
    image, names, stop = packfs.open(packed), files_of(tree), threading.Event()

    def read():
        while not stop.is_set():
            image.read_many(names)

    threads = [threading.Thread(target=read) for _ in range(3)]
    [thread.start() for thread in threads]
    try:
        for _ in range(10):
            in_child(lambda: image.read_many(names[:50]))
    finally:
        stop.set()
        [thread.join() for thread in threads]


def test_a_child_reads_an_image_that_was_removed(packed, tmp_path):
    path = tmp_path / "gone.img"
    path.write_bytes(packed.read_bytes())
    image = packfs.open(path)
    path.unlink()
    assert image.read("docs/hello.txt") == b"hello\nworld\n" and len(image.find("many")) == 300

    def work():
        assert image.read("docs/hello.txt") == b"hello\nworld\n"

    in_child(work)
    with pytest.raises(FileNotFoundError):
        pickle.loads(pickle.dumps(image))


def first_bytes(image):
    """For processes that are spawned: what they return of a pickled image."""
    return image.read("docs/hello.txt"), len(image.read_many([f"many/{n:03}.bin" for n in range(300)]))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_images_travel_to_workers(packed, method):
    image = packfs.open(packed, jobs=1)
    image.read_many(files_to_warm := [f"many/{n:03}.bin" for n in range(300)])
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map_async(first_bytes, [image] * 4).get(PATIENCE) == [(b"hello\nworld\n", len(files_to_warm))] * 4


def test_pickles_keep_options(packed):
    image = packfs.open(packed, jobs=1, limits={"max_entries": 10})
    again = pickle.loads(pickle.dumps(image))
    with pytest.raises(packfs.LimitExceeded):
        again.find()
    error = pickle.loads(pickle.dumps(packfs.CorruptImage(117, "x")))
    assert isinstance(error, packfs.CorruptImage) and error.errno == 117


@pytest.mark.parametrize("work", ["pack", "read_many"])
def test_ctrl_c_stops_work(packed, tree, tmp_path, work):
    lines = {
        "pack": f"packfs.pack({str(tree)!r}, {str(tmp_path / 'a.sqfs')!r}, codec='xz:9', progress=ready)",
        "read_many": "image = packfs.open(sys.argv[1]); ready()\n    while True: image.read_many(names)",
    }
    program = f"""
import os, signal, sys, threading, packfs
names = {files_of(tree)!r} * 3
# What starts the tests in the background may have it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
told = []
def ready(*_):
    if not told:
        told.append(1)
        os.kill(os.getpid(), signal.SIGINT)
try:
    {lines[work]}
except KeyboardInterrupt:
    sys.exit(42)
"""
    done = subprocess.run([sys.executable, "-c", program, str(packed)], timeout=PATIENCE, capture_output=True)
    assert done.returncode == 42, done.stderr.decode()
    assert os.listdir(tmp_path) == []
