#!/usr/bin/env python3
"""Trains a small net on the same images in five packings, in turn in each round, and prints a table.

    python3 training.py FOLDER [--samples 20000] [--batch 64] [--workers 2] [--rounds 3] [--cold]

FOLDER gets the images, made up if it is empty: `tree` (an image folder), `tree.sqfs`, `tree.erofs`, `shards` (tars for
WebDataset), and `tree.lmdb`. Each packing trains in a process of its own for two epochs; --cold drops the page cache of the machine
before the first, which needs root. Start-up is the time from importing the packing's library to the first batch; memory is the
peak of the proportional sizes of the process and its workers. CPU time tells more than wall time on a busy machine. Packings whose library is missing are left out by name.
"""

import argparse
import importlib.util
import io
import json
import os
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import tarfile
import threading
import time

CLASSES = 10
SIDE = 64
SHARD = 500
PACKINGS = {
    "packfs, SquashFS": "packfs",
    "packfs, EROFS": "packfs",
    "ImageFolder": None,
    "WebDataset": "webdataset",
    "LMDB": "lmdb",
}


def make(folder, samples):
    """Makes images, whose color tells their class, and packs them."""
    import packfs
    from PIL import Image

    rng, tree = random.Random(1), folder / "tree"
    names = []
    for number in range(samples):
        kind = rng.randrange(CLASSES)
        noise = Image.frombytes("RGB", (16, 16), rng.randbytes(768)).resize((SIDE, SIDE))
        plain = Image.new("RGB", (SIDE, SIDE), (kind * 25, 255 - kind * 25, 128))
        path = tree / f"class{kind}" / f"{number:06}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.blend(plain, noise, 0.5).save(path, quality=90)
        names.append((path, kind))
    packfs.pack(tree, folder / "tree.sqfs", codec="zstd:3", verify=False)
    packfs.pack(tree, folder / "tree.erofs", codec="zstd:3", verify=False)
    rng.shuffle(names)
    (folder / "shards").mkdir()
    for start in range(0, samples, SHARD):
        with tarfile.open(folder / "shards" / f"{start // SHARD:03}.tar", "w") as tar:
            for path, kind in names[start : start + SHARD]:
                tar.add(path, f"{path.stem}.jpg")
                label = tarfile.TarInfo(f"{path.stem}.cls")
                label.size = 1
                tar.addfile(label, io.BytesIO(str(kind).encode()))
    if importlib.util.find_spec("lmdb"):
        import lmdb

        with lmdb.open(str(folder / "tree.lmdb"), map_size=1 << 34) as db, db.begin(write=True) as writing:
            for number, (path, kind) in enumerate(names):
                writing.put(str(number).encode(), bytes([kind]) + path.read_bytes())


def decode(contents):
    """Returns an image as a tensor of 3 by SIDE by SIDE."""
    import numpy
    import torch
    from PIL import Image

    pixels = numpy.asarray(Image.open(io.BytesIO(contents)).convert("RGB"), dtype=numpy.float32)
    return torch.from_numpy(pixels.transpose(2, 0, 1) / 255)


class Files:
    """Image folder on a filesystem, as torchvision's ImageFolder: a list of paths, one open() for each sample."""

    def __init__(self, tree):
        kinds = sorted(os.listdir(tree))
        self.samples = [
            (os.path.join(tree, name, file), kind)
            for kind, name in enumerate(kinds)
            for file in sorted(os.listdir(os.path.join(tree, name)))
        ]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, kind = self.samples[index]
        with open(path, "rb") as file:
            return decode(file.read()), kind


class Records:
    """Samples of an LMDB, which each worker opens for itself."""

    def __init__(self, path):
        import lmdb

        self.path, self.db = path, None
        with lmdb.open(path, readonly=True, lock=False) as db:
            self.count = db.stat()["entries"]

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        import lmdb

        if self.db is None:
            self.db = lmdb.open(self.path, readonly=True, lock=False, readahead=False).begin()
        record = self.db.get(str(index).encode())
        return decode(record[1:]), record[0]


def loader(packing, folder, batch, workers):
    """Returns a DataLoader of shuffled batches."""
    from torch.utils.data import DataLoader

    if packing.startswith("packfs"):
        from packfs.torch import PackfsDataset, WindowSampler

        image = "tree.erofs" if packing.endswith("EROFS") else "tree.sqfs"
        data = PackfsDataset(folder / image, suffixes=(".jpg",), transform=decode, labels=True)
        order = WindowSampler(data.disk_order(), window=4096, seed=1)
        return DataLoader(data, batch_size=batch, sampler=order, num_workers=workers)
    if packing == "WebDataset":
        import webdataset

        shards = sorted(str(path) for path in (folder / "shards").iterdir())
        data = webdataset.WebDataset(shards, shardshuffle=len(shards)).shuffle(1000).to_tuple("jpg", "cls")
        return DataLoader(data.map_tuple(decode, int), batch_size=batch, num_workers=workers)
    data = Files(str(folder / "tree")) if packing == "ImageFolder" else Records(str(folder / "tree.lmdb"))
    return DataLoader(data, batch_size=batch, shuffle=True, num_workers=workers)


def proportional(stop, peak):
    """Notes the peak of the proportional memory of this process and its children, in MiB."""

    def of(pid):
        try:
            lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except OSError:
            return 0
        own = sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        return own + sum(of(child) for child in children)

    while not stop.wait(0.5):
        peak[0] = max(peak[0], of(os.getpid()) / 1024)


def cpu_time():
    """Returns the seconds of CPU of this process and the workers that have ended."""
    usages = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def train(packing, folder, batch, workers, cold):
    """Trains in this process; returns figures."""
    import torch

    torch.set_num_threads(1)
    stop, peak = threading.Event(), [0]
    threading.Thread(target=proportional, args=(stop, peak), daemon=True).start()
    if cold:
        subprocess.run(["sync"], check=True)
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
    net = torch.nn.Sequential(
        torch.nn.AvgPool2d(8), torch.nn.Flatten(), torch.nn.Linear(3 * (SIDE // 8) ** 2, CLASSES)
    )
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    start = time.perf_counter()
    batches = loader(packing, folder, batch, workers)
    figures = {"rates": [], "cpu": []}
    for _ in range(2):
        count, begun, cpu_before = 0, time.perf_counter(), cpu_time()
        for images, kinds in batches:
            figures.setdefault("start", time.perf_counter() - start)
            loss = torch.nn.functional.cross_entropy(net(images), torch.as_tensor(kinds))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            count += len(images)
        figures["rates"].append(count / (time.perf_counter() - begun))
        # Workers have ended with the epoch.
        figures["cpu"].append((cpu_time() - cpu_before) / count)
    stop.set()
    return {**figures, "memory": peak[0], "loss": loss.item(), "samples": count}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--samples", type=int, default=20_000, help="images to make (default 20000)")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cold", action="store_true", help="drop the page cache before each run (root)")
    parser.add_argument("--one", choices=PACKINGS, help=argparse.SUPPRESS)
    args = parser.parse_args()

    if args.one:
        print(json.dumps(train(args.one, args.folder, args.batch, args.workers, args.cold)))
        return
    if not (args.folder / "tree").is_dir():
        args.folder.mkdir(parents=True, exist_ok=True)
        make(args.folder, args.samples)
    missing = [name for name, module in PACKINGS.items() if module and not importlib.util.find_spec(module)]
    if missing:
        print(f"not installed, not measured: {', '.join(missing)}")
    figures = {name: [] for name in PACKINGS if name not in missing}
    for _ in range(args.rounds):
        for name, taken in figures.items():
            words = [sys.executable, __file__, str(args.folder), "--one", name]
            words += ["--batch", str(args.batch), "--workers", str(args.workers)] + ["--cold"] * args.cold
            done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
            taken.append(json.loads(done.stdout))
    first = "cold" if args.cold else "first epoch"
    print(f"| packing | samples/s, {first} | samples/s, second | CPU a sample, second | start-up | memory | loss |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for name, taken in figures.items():
        middle = lambda figure: statistics.median(figure(one) for one in taken)
        print(
            f"| {name} | {middle(lambda one: one['rates'][0]):.0f} | {middle(lambda one: one['rates'][1]):.0f} "
            f"| {1e6 * middle(lambda one: one['cpu'][1]):.0f} µs | {1000 * middle(lambda one: one['start']):.0f} ms | {middle(lambda one: one['memory']):.0f} MiB "
            f"| {middle(lambda one: one['loss']):.2f} |"
        )


if __name__ == "__main__":
    main()
