"""Data sets and samplers; with PyTorch where it is installed."""

import os
import pickle
import random

import packfs
import pytest
from packfs.torch import PackfsDataset, WindowSampler


@pytest.fixture
def photos(tmp_path):
    """Image of 3 classes with 40 samples each, which hold their paths."""
    names = [f"train/{kind}/{n:02}.jpg" for kind in ("cat", "dog", "owl") for n in range(40)]
    path = tmp_path / "photos.sqfs"
    packfs.pack({**{name: name * 50 for name in names}, "train/cat/notes.txt": "", "README": "x"}, path)
    return path


def test_samples_are_files(photos):
    data = PackfsDataset(photos)
    assert len(data) == 122 and data.path(0) == "README" and data[0] == b"x" and data[-1] == data[121]
    data = PackfsDataset(photos, "train", suffixes=(".jpg",), labels=True, transform=bytes.decode)
    assert len(data) == 120 and data.classes == ["cat", "dog", "owl"]
    assert data[45] == (data.path(45) * 50, 1)
    assert data.__getitems__([119, 0]) == [(data.path(119) * 50, 2), (data.path(0) * 50, 0)]
    assert PackfsDataset(photos, paths=["README", "README"]).paths == ["README", "README"]
    with pytest.raises(IndexError):
        data[120]
    with pytest.raises(ValueError, match="README"):
        PackfsDataset(photos, labels=True)
    with pytest.raises(FileNotFoundError):
        PackfsDataset(photos, "none")


def test_samples_have_the_order_of_their_bytes(tmp_path):
    names = ["b/\udcff.jpg", "b/\u00e9.jpg", "a/z.jpg", "a b/1.jpg", "a-b/1.jpg", "b/2.png"]
    path = tmp_path / "a.sqfs"
    packfs.pack({name: name.encode(errors="surrogateescape") for name in names}, path)
    data = PackfsDataset(path, suffixes=[".jpg", ".none"], labels=True, transform=os.fsdecode)
    assert data.paths == sorted(names[:5], key=os.fsencode)
    assert data.classes == ["a", "a b", "a-b", "b"]
    assert data.__getitems__(range(5)) == list(zip(data.paths, [1, 2, 0, 3, 3]))
    given = PackfsDataset(path, paths=["/b/2.png", "a/z.jpg", "b/2.png"], labels=True)
    assert given.classes == ["a", "b"] and [label for _, label in given] == [1, 0, 1]
    assert sorted(given.disk_order()) == [0, 1, 2]
    assert len(PackfsDataset(path, "b", suffixes=())) == 0 and PackfsDataset(path, suffixes=()).disk_order() == []


def test_opens_the_image_when_it_reads(photos):
    data = PackfsDataset(photos)
    assert data._opened is None
    again = pickle.loads(pickle.dumps(data))
    assert again[0] == b"x" and len(pickle.dumps(again)) < 10_000


def test_an_error_names_the_sample(tmp_path):
    chance = random.Random(1)
    path = tmp_path / "a.sqfs"
    packfs.pack({f"{n}.bin": bytes(chance.choices(b"abcd", k=200_000)) for n in range(4)}, path, codec="gzip:1")
    image = bytearray(path.read_bytes())
    data = PackfsDataset(path)
    place = packfs.open(path).positions(["2.bin"])[0]
    image[place : place + 200] = bytes(200)
    path.write_bytes(image)
    assert data[1] == packfs.open(path).read("1.bin")
    with pytest.raises(packfs.CorruptImage, match="2.bin"):
        data[2]


def test_order_is_that_of_the_data(photos):
    data = PackfsDataset(photos)
    order = data.disk_order()
    places = data.image.positions([data.path(index) for index in order])
    assert sorted(order) == list(range(122)) and places == sorted(places)


def test_an_epoch_has_each_sample_once_in_windows():
    order = [n * 7 % 1000 for n in range(1000)]
    place = {index: at for at, index in enumerate(order)}
    sampler = WindowSampler(order, window=100, seed=5)
    first, second = list(sampler), list(sampler)
    assert sorted(first) == sorted(second) == sorted(order) and first != second and len(sampler) == 1000
    borders = [abs(place[a] - place[b]) for a, b in zip(first, first[1:])]
    assert sum(step >= 100 for step in borders) <= 12
    assert list(WindowSampler(order, window=100, seed=5)) == first
    assert list(WindowSampler(order, window=100, seed=6)) != first


def test_replicas_share_an_epoch():
    parts = [list(WindowSampler(range(103), window=10, rank=rank, num_replicas=4)) for rank in range(4)]
    assert [len(part) for part in parts] == [25] * 4 and len(set(sum(parts, []))) == 100


def test_continues_from_a_state():
    sampler = WindowSampler(range(500), window=64)
    list(sampler)
    second = iter(sampler)
    taken = [next(second) for _ in range(123)]
    state = pickle.loads(pickle.dumps(sampler.state_dict(samples=123)))
    rest = list(second)
    again = WindowSampler(range(500), window=64)
    again.load_state_dict(state)
    assert list(again) == rest and len(taken) + len(rest) == 500
    third = list(sampler)
    again.load_state_dict({**state, "samples": 0, "epoch": 2})
    assert list(again) == third
    # A DataLoader is ahead: all indices are drawn, but the caller has seen only some samples.
    assert sampler.state_dict(7) == {"epoch": 2, "samples": 7, "seed": 0}
    assert sampler.state_dict(500) == {"epoch": 3, "samples": 0, "seed": 0}
    for wrong in ({"window": 0}, {"rank": 2, "num_replicas": 2}):
        with pytest.raises(ValueError):
            WindowSampler([], **wrong)


@pytest.mark.parametrize("workers", [None, "fork", "spawn"])
def test_loads_batches(photos, workers):
    torch = pytest.importorskip("torch")
    data = PackfsDataset(photos, "train", suffixes=(".jpg",), labels=True, transform=len)
    loader = torch.utils.data.DataLoader(
        data,
        batch_size=16,
        sampler=WindowSampler(data.disk_order(), window=32),
        num_workers=2 if workers else 0,
        multiprocessing_context=workers,
    )
    for _ in range(2):
        batches = list(loader)
        assert sum(len(labels) for _, labels in batches) == 120
        assert torch.cat([labels for _, labels in batches]).bincount().tolist() == [40, 40, 40]
