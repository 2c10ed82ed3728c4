#!/usr/bin/env python3
"""Tries an engine on this machine: one worker dies, one task raises, one shard is packed twice.

    python3 test_packfs.py ray|dask|processes PACKFS DIR

The merged image must have the same bytes as the one that the command line makes of the same plan.
The engine `processes` is this program's own, and needs no package.
"""

import argparse
import concurrent.futures
import concurrent.futures.process
import filecmp
import importlib
import os
import pathlib
import subprocess
import sys
import tempfile

import packfs_shards as shards


def troubled(index, packfs, plan, store, jobs):
    """Packs a shard; shards 1, 2 and 3 have trouble at their first try."""
    tried = pathlib.Path(f"{store}.tried.{index}")
    is_first = not tried.exists()
    tried.touch()
    if is_first and index == 1:
        # The worker dies while its program runs on.
        subprocess.Popen([packfs, "pack-shard", plan, str(index), "--to", store, "-q"])
        os._exit(1)
    if is_first and index == 2:
        raise shards.TransientError("the first try fails")
    document = shards.pack_shard(index, packfs, plan, store, jobs)
    if index == 3:
        document = shards.pack_shard(index, packfs, plan, store, jobs)
        assert document["state"] == "present", document
    return document


def pack_in_processes(args, work):
    """Does what engines do: tries a task again if its worker dies, or raises what a retry may not have."""
    for index in shards.largest_first(args.plan):
        for tries_left in range(shards.RETRIES, -1, -1):
            with concurrent.futures.ProcessPoolExecutor(1) as pool:
                try:
                    yield pool.submit(work, index, args.packfs, args.plan, args.to, args.jobs).result()
                    break
                except (shards.TransientError, concurrent.futures.process.BrokenProcessPool):
                    if not tries_left:
                        raise


def main():
    engine = sys.argv[1]
    pack_all = pack_in_processes if engine == "processes" else importlib.import_module(f"packfs_{engine}").pack_all
    packfs, source = (str(pathlib.Path(path).absolute()) for path in sys.argv[2:4])
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        run = lambda *words: subprocess.run([packfs, *words], check=True)
        run("plan", source, "--shards", "8", "--out", path("plan"), "-q")
        for index in range(8):
            run("pack-shard", path("plan"), str(index), "--to", path("plain"), "-q")
        run("merge", path("plan"), "--from", path("plain"), "-o", path("plain.sqfs"), "-q")
        args = argparse.Namespace(packfs=packfs, plan=path("plan"), to=path("store"), jobs=1, address=None, workers=2)
        done = list(pack_all(args, work=troubled))
        assert sorted(shard["shard"] for shard in done) == list(range(8)), done
        run("merge", path("plan"), "--from", path("store"), "-o", path("engine.sqfs"), "-q")
        assert filecmp.cmp(path("plain.sqfs"), path("engine.sqfs"), shallow=False)
        try:
            shards.pack_shard(99, packfs, args.plan, args.to, 1)
            raise AssertionError("there is no shard 99")
        except shards.FinalError as error:
            assert "0 to 7" in str(error), error
        print("same image:", os.path.getsize(path("engine.sqfs")), "bytes")


if __name__ == "__main__":
    main()
