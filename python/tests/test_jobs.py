"""Packing, merging, checking, digests."""

import os
import subprocess
import sys
import sysconfig

import packfs
import pytest


def test_packs_trees_lists_and_contents(tree, tmp_path):
    report = packfs.pack(tree, tmp_path / "a.sqfs", codec="zstd:3", block_size=65536, xattrs=False)
    assert report["files"] == 307
    assert packfs.digest(tree, facts=["mode", "mtime"]) == packfs.digest(tmp_path / "a.sqfs", facts=["mode", "mtime"])
    assert packfs.check(tmp_path / "a.sqfs")["sound"]
    packfs.pack([tree / "docs", tree / "big/text"], tmp_path / "b.erofs", codec="lz4")
    assert sorted(packfs.open(tmp_path / "b.erofs").listdir()) == ["docs", "text"]
    packfs.pack({"etc/hosts": "127.0.0.1\n", "bin/x": b"\0"}, tmp_path / "c.sqfs")
    image = packfs.open(tmp_path / "c.sqfs")
    assert image.read("etc/hosts") == b"127.0.0.1\n" and image.read("bin/x") == b"\0"


def test_takes_the_options_of_the_library(tree, tmp_path):
    packfs.pack(
        tree,
        tmp_path / "a.img",
        format="squashfs",
        codec="gzip:1",
        optimize="read",
        format_options={"fragments": "always"},
        made_at=1_000_000_000,
        order="path",
        min_gain=5,
        effort="level",
        exclude=["*.bin"],
        include=["docs"],
        prefix="srv",
        add=["d /proc 0555 0 0", 'file /etc/hostname mode=0600 data="box\\n"'],
        uid=7,
        gid_map=["0-100000:8"],
        file_mode="u=rw,go=",
        dir_mode="0711",
        mtime=1.5e9,
        lossy=True,
        jobs=1,
        verify=True,
        sync=False,
        limits={"max_depth": 50},
    )
    image = packfs.open(tmp_path / "a.img")
    assert image.read("etc/hostname") == b"box\n" and image.stat("proc").st_mode & 0o7777 == 0o555
    hello = image.stat("srv/docs/hello.txt")
    assert (hello.st_uid, hello.st_gid, hello.st_mode & 0o777, hello.st_mtime) == (7, 8, 0o600, 1.5e9)
    assert not image.exists("srv/many/000.bin")


def test_wrong_options_are_named(tree, tmp_path):
    output = tmp_path / "a.sqfs"
    cases = [
        ({"codec": "rar"}, ValueError, "rar"),
        ({"order": "random"}, ValueError, "similarity"),
        ({"optimize": "luck"}, ValueError, "balanced"),
        ({"effort": "some"}, ValueError, "effort"),
        ({"min_gain": 90}, ValueError, "min_gain"),
        ({"uid_map": ["a"]}, ValueError, "uid_map"),
        ({"block_size": "large"}, TypeError, "block_size"),
        ({"max_size": 100}, packfs.Error, "100"),
        ({"levels": 3}, TypeError, "levels"),
    ]
    for options, kind, word in cases:
        with pytest.raises(kind, match=word):
            packfs.pack(tree / "docs", output, **options)
        assert not output.exists()
    with pytest.raises(FileNotFoundError):
        packfs.pack(tree / "none", output)


def test_the_environment_sets_the_time(tree, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000")
    packfs.pack(tree / "docs", tmp_path / "a.sqfs", exclude=["not*"])
    assert packfs.open(tmp_path / "a.sqfs").stat("hello.txt").st_mtime == 1000


def test_tells_progress_and_stops(tree, tmp_path):
    told = []
    packfs.pack(tree, tmp_path / "a.sqfs", progress=told.append)
    assert isinstance(told[-1], packfs.Progress) and told[-1].stage in ("metadata", "verify", "data")
    assert packfs.check(tmp_path / "a.sqfs", progress=told.append)["files"] > 300

    class Enough(Exception):
        pass

    def stop(_):
        raise Enough

    output = tmp_path / "b.sqfs"
    with pytest.raises(Enough):
        packfs.pack(tree, output, progress=stop, codec="xz:9")
    assert not output.exists() and os.listdir(tmp_path) == ["a.sqfs"]


def test_warnings_are_pythons(tmp_path):
    (tmp_path / "plain").write_text("text")
    with pytest.warns(UserWarning, match="packing the file itself"):
        packfs.pack(tmp_path / "plain", tmp_path / "a.sqfs")


def test_merges(tmp_path):
    for name in "abc":
        packfs.pack({f"{name}/file": name, "shared": name}, tmp_path / f"{name}.sqfs")
    paths = [tmp_path / f"{name}.sqfs" for name in "ab"]
    with pytest.raises(packfs.Error, match="shared"):
        packfs.merge(paths, tmp_path / "all.sqfs")
    packfs.merge(paths, tmp_path / "all.sqfs", at={"usr/c": tmp_path / "c.sqfs"}, on_conflict="last")
    image = packfs.open(tmp_path / "all.sqfs")
    assert image.read_many(["a/file", "b/file", "usr/c/c/file", "shared"]) == [b"a", b"b", b"c", b"b"]


def test_reports_damage(tmp_path):
    packfs.pack({"a": os.urandom(100_000) * 3}, tmp_path / "a.sqfs", codec="gzip")
    data = bytearray((tmp_path / "a.sqfs").read_bytes())
    data[50_000:60_000] = bytes(10_000)
    (tmp_path / "a.sqfs").write_bytes(data)
    assert packfs.check(tmp_path / "a.sqfs", data=False)["sound"]
    (tmp_path / "b.sqfs").write_bytes(data[:-3000])
    with pytest.raises(packfs.CorruptImage):
        packfs.open(tmp_path / "b.sqfs")


def test_the_wheel_brings_the_program():
    program = os.path.join(sysconfig.get_path("scripts"), "packfs")
    if not os.path.exists(program):
        pytest.skip("the wheel was built without the program")
    versions = [
        subprocess.run([*command, "--version"], capture_output=True, text=True, check=True).stdout
        for command in ([program], [sys.executable, "-m", "packfs"])
    ]
    assert versions[0] == versions[1] and versions[0].startswith("packfs ")
