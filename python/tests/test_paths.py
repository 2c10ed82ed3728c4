"""Paths in images, entries as values, and advice in the words of the package."""

import hashlib
import importlib.resources.abc
import json
import multiprocessing
import pathlib
import pickle
import zipfile

import packfs
import pytest
from packfs._hints import worded


@pytest.fixture
def image(tmp_path):
    files = {"etc/hosts": "a\r\nb\n", "etc/conf.d/x.conf": "x", "etc/y.conf": "y", "readme": "\xe9"}
    packfs.pack(files, tmp_path / "i.sqfs")
    with packfs.open(tmp_path / "i.sqfs") as opened:
        yield opened


def test_entries_are_values(image):
    for entry in image.find():
        again = pickle.loads(pickle.dumps(entry))
        assert again == entry and hash(again) == hash(entry) and repr(again) == repr(entry)
        assert again.st_mtime_ns == entry.st_mtime_ns
    entries = image.scandir("etc")
    assert set(entries) == set(image.scandir("etc")) and entries[0] != entries[1]
    assert image.read(pickle.loads(pickle.dumps(image.stat("readme")))) == "\xe9".encode()
    with pytest.raises(packfs.Error):
        image.read(packfs.Entry("x", 1 << 40, 0o100644, 5, [0, 0, 1], 0))
    with pytest.raises(ValueError):
        packfs.Entry("x", 1, 0o644, 5, [0, 0, 1], 0)


def test_images_are_containers_of_paths(image):
    assert "etc/hosts" in image and image.stat("etc") in image and "nope" not in image and "readme/x" not in image
    assert sorted(entry.path for entry in image) == [
        "etc",
        "etc/conf.d",
        "etc/conf.d/x.conf",
        "etc/hosts",
        "etc/y.conf",
        "readme",
    ]
    assert image.read_text("readme", "utf-8") == "\xe9" and image.read_bytes("readme") == "\xe9".encode()
    assert image.read_text("etc/hosts") == "a\nb\n"
    for pattern, wanted in {
        "*": ["etc", "readme"],
        "etc/*.conf": ["etc/y.conf"],
        "**/*.conf": ["etc/conf.d/x.conf", "etc/y.conf"],
        "etc/conf.[a-d]/x*": ["etc/conf.d/x.conf"],
        "*/nope": [],
        "**/**/x.conf": ["etc/conf.d/x.conf"],
        "etc/**": ["etc/conf.d", "etc/conf.d/x.conf", "etc/hosts", "etc/y.conf"],
    }.items():
        assert sorted(image.glob(pattern)) == wanted
    with pytest.raises(ValueError):
        list(image.glob("../x"))


def test_paths_are_traversable(image):
    root = image / ""
    assert isinstance(root, importlib.resources.abc.Traversable)
    hosts = root / "etc" / "hosts"
    assert (hosts.name, hosts.stem, (root / "a.tar.gz").suffix, str(hosts.parent)) == ("hosts", "hosts", ".gz", "etc")
    assert sorted(path.name for path in (root / "etc").iterdir()) == ["conf.d", "hosts", "y.conf"]
    assert sorted(str(path) for path in root.rglob("*.conf")) == ["etc/conf.d/x.conf", "etc/y.conf"]
    assert hosts.is_file() and not hosts.is_dir() and hosts.exists() and not (root / "x").exists()
    assert hosts.read_bytes() == b"a\r\nb\n" and hosts.open("rb").read(1) == b"a"
    with hosts.open() as text:
        assert text.readline() == "a\n"
    assert str(hosts.relative_to("etc")) == "hosts" and hosts == image / "etc/hosts"
    assert hosts in {image / "etc/hosts"} and str(root.joinpath("etc", "hosts")) == "etc/hosts"
    with pytest.raises(ValueError):
        image / "../x"


def test_errors_have_names_and_advice_for_python(image, tmp_path):
    for call in [image.read, image.stat, image.open, image.listdir, image.readlink]:
        with pytest.raises(FileNotFoundError) as caught:
            call("nope/x")
        assert caught.value.filename == "nope/x"
    for call in [packfs.open, packfs.check, packfs.digest]:
        with pytest.raises(FileNotFoundError) as caught:
            call(tmp_path / "nope.sqfs")
        assert caught.value.filename == str(tmp_path / "nope.sqfs")
    with pytest.raises(packfs.LimitExceeded) as caught:
        packfs.digest(tmp_path / "i.sqfs", limits={"max_entries": 1})
    assert caught.value.__notes__[0].startswith('hint: limits={"max_entries": N} allows more')
    with pytest.raises(packfs.UnsupportedImage) as caught:
        packfs.open(pathlib.Path(__file__))
    assert not any("--" in note or "packfs info" in note for note in caught.value.__notes__)


def test_hints_are_in_the_words_of_the_package():
    for hint, wanted in {
        "--ignore-checksum reads it anyway": "ignore_checksum=True reads it anyway",
        "--ignore-log (or --no-journal) reads it": "ignore_log=True (or no_journal=True) reads it",
        "--device FILE adds a device": "devices=[FILE] adds a device",
        '--device "b.vmdk" --device c': "devices=['b.vmdk'] devices=['c']",
        "--allow-backing FILE reads it": "backing=[FILE] reads it",
        "p1 is shown; --part p1/NAME chooses another": "p1 is shown; part='p1/NAME' chooses another",
        "--platform chooses one of: linux/arm64": "platform chooses one of: linux/arm64",
        "--offset 4096 reads it, as in packfs ls FILE --offset 4096": "offset=4096 reads it",
        "--magic shsq reads it, as in packfs ls FILE --magic shsq": "magic=b'shsq' reads it",
        "omit --kernel": "omit kernel",
        "--kernel 6.15 allows more": "kernel='6.15' allows more",
        "--at PREFIX=IMAGE mounts one elsewhere": "at={PREFIX: IMAGE} mounts one elsewhere",
        "use -O inner=squashfs": "use format_options={'inner': 'squashfs'}",
        "allow more memory, or use --no-verify": "allow more memory, or use verify=False",
        "packfs pack FILE IMAGE converts it to an image": "packfs.pack(FILE, IMAGE) converts it to an image",
        "packfs info --scan FILE searches it; --offset reads one": "offset reads one",
        "packfs pack --as-file packs the file itself": None,
        "the archive is cut off": "the archive is cut off",
        # What stands in quotes is a name.
        'cannot read "a; --offset 1 packfs pack"': 'cannot read "a; --offset 1 packfs pack"',
        '"--part x": --offset 64 reads it': '"--part x": offset=64 reads it',
    }.items():
        assert worded(hint) == wanted


def newc(name, mode, contents):
    """An entry of a cpio archive."""
    numbers = [1, mode, 0, 0, 1, 0, len(contents), 0, 0, 0, 0, len(name) + 1, 0]
    head = b"070701" + "".join(f"{number:08x}" for number in numbers).encode() + name.encode() + b"\0"
    return b"".join(part + bytes(-len(part) % 4) for part in (head, contents))


def test_archives_and_composefs(tmp_path):
    with zipfile.ZipFile(tmp_path / "t.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("dir/f", "text" * 100)
    (tmp_path / "t.cpio").write_bytes(newc("f", 0o100644, b"text" * 100) + newc("TRAILER!!!", 0, b""))
    for name, path in {"t.zip": "dir/f", "t.cpio": "f"}.items():
        packfs.pack(tmp_path / name, tmp_path / "z.erofs")
        with packfs.open(tmp_path / "z.erofs") as opened:
            assert opened.read(path) == b"text" * 100
    report = packfs.composefs(tmp_path / "t.zip", tmp_path / "c.cfs", objects=tmp_path / "objects")
    assert report["objects"]["written"] == 1
    with packfs.open(tmp_path / "c.cfs", objects=[tmp_path / "objects"]) as opened:
        assert opened.read("dir/f") == b"text" * 100


def test_layers_of_a_container_are_opened(image, tmp_path):
    blobs = tmp_path / "layout/blobs/sha256"
    blobs.mkdir(parents=True)

    def blob(contents, media):
        digest = hashlib.sha256(contents).hexdigest()
        (blobs / digest).write_bytes(contents)
        return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(contents)}

    packfs.pack({"etc/hosts": "a"}, tmp_path / "layer.erofs")
    layer = blob((tmp_path / "layer.erofs").read_bytes(), "application/vnd.erofs.layer.v1")
    diff_ids = {"rootfs": {"type": "layers", "diff_ids": [layer["digest"]]}, "os": "linux", "architecture": "amd64"}
    config = blob(json.dumps(diff_ids).encode(), "application/vnd.oci.image.config.v1+json")
    manifest = {"schemaVersion": 2, "config": config, "layers": [layer]}
    only = blob(json.dumps(manifest).encode(), "application/vnd.oci.image.manifest.v1+json")
    (tmp_path / "layout/oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    (tmp_path / "layout/index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [only]}))
    for place in [tmp_path / "layout", f"oci-layout:{tmp_path}/layout"]:
        with packfs.open(place) as opened:
            assert opened.format == "erofs" and opened.read("etc/hosts") == b"a"
            assert multiprocessing.get_context("fork").Pool(1).apply(opened.read, ("etc/hosts",)) == b"a"


def test_the_version_is_that_of_the_package():
    assert packfs.__version__.count(".") == 2
