#!/usr/bin/env python3
"""Measures reading from Python, rivals in turn in each round, and prints a table of medians.

    python3 reading.py IMAGE [--files 10000] [--rounds 5] [--program packfs] [--rust read_many] [--tree DIR]

The image is read once before, so that it is in the page cache. packfs opens it anew for each measurement, so that no
decoded block is left from the last one. PySquashfsImage is measured if it is installed and reads the image; the library
without Python by the example crates/packfs/examples/read_many.rs.
"""

import argparse
import os
import random
import statistics
import subprocess
import time

import packfs


def rival(path):
    """Returns a function that reads files by PySquashfsImage; None if it cannot."""
    try:
        from PySquashfsImage import SquashFsImage

        SquashFsImage.from_file(path).close()
    except Exception as error:
        print(f"PySquashfsImage is not measured: {error}")
        return None

    def read(names):
        with SquashFsImage.from_file(path) as image:
            return [image.select("/" + name).read_bytes() for name in names]

    return read


def timed(work):
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("image")
    parser.add_argument("--files", type=int, default=10_000, help="small files to read (default 10000)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--program", help="program packfs, to compare sequential reading")
    parser.add_argument("--tree", help="directory with the same files, to compare open()")
    parser.add_argument("--rust", help="example read_many of the library")
    args = parser.parse_args()

    with open(args.image, "rb") as file:
        while file.read(1 << 20):
            pass
    with packfs.open(args.image, limits="none") as image:
        files = [entry for entry in image.find() if entry.is_file()]
    image_sizes = {entry.path: entry.st_size for entry in files}
    small = [entry.path for entry in files if 0 < entry.st_size <= 128 << 10]
    chosen = random.Random(1).sample(small, min(args.files, len(small)))
    longest = max(files, key=lambda entry: entry.st_size)
    size = sum(image_sizes[name] for name in chosen)
    print(f"{len(chosen)} files of {size / 2**20:.1f} MiB; the longest file has {longest.st_size / 2**20:.1f} MiB\n")

    def opened(work):
        with packfs.open(args.image, limits="none") as image:
            return timed(lambda: work(image))

    def latency(image):
        image.read(chosen[0])
        return [image.read(chosen[0]) for _ in range(1000)]

    def sequential(size):
        def read(image):
            with image.open(longest) as file:
                while file.read(size):
                    pass

        return lambda: opened(read)

    def refill(image):
        buffer = bytearray(1 << 20)
        with image.open(longest) as file:
            while file.readinto(buffer):
                pass

    slow = rival(args.image)
    rows = {
        "read_many": lambda: opened(lambda image: image.read_many(chosen)),
        "read, one after the other": lambda: opened(lambda image: [image.read(name) for name in chosen]),
        "read of one decoded file, 1000 times": lambda: opened(latency),
        "longest file, 64 KiB at a time": sequential(64 << 10),
        "longest file, 1 MiB at a time": sequential(1 << 20),
        "longest file, readinto() of 1 MiB": lambda: opened(refill),
    }
    if slow:
        rows["PySquashfsImage"] = lambda: timed(lambda: slow(chosen))
    if args.program:
        command = [args.program, "cat", args.image, longest.path]
        rows["longest file, packfs cat"] = lambda: timed(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))
    if args.tree:

        def plain():
            for name in chosen:
                with open(os.path.join(args.tree, name), "rb") as file:
                    file.read()

        rows["open() of each in the directory"] = lambda: timed(plain)
    if args.rust:

        def rust():
            done = subprocess.run([args.rust, args.image, "2"], input="\n".join(chosen), text=True, check=True, capture_output=True)
            return float(done.stdout.split()[-2]) / 1000, None

        rows["read_many, library in Rust"] = rust
    times = {name: [] for name in rows}
    for _ in range(args.rounds):
        for name, run in rows.items():
            times[name].append(run()[0])
    print("| work | median | least | most |\n|---|--:|--:|--:|")
    for name, taken in times.items():
        figures = " | ".join(f"{1000 * figure:.1f} ms" for figure in (statistics.median(taken), min(taken), max(taken)))
        print(f"| {name} | {figures} |")
    print(f"\n{os.cpu_count()} CPUs, Python {'.'.join(map(str, __import__('sys').version_info[:2]))}")


if __name__ == "__main__":
    main()
