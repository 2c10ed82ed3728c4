#!/usr/bin/env python3
"""Tries packfs_ray.py on a local Ray: one worker dies, one task raises, one shard is packed twice.

    python3 test_packfs_ray.py PACKFS DIR

The merged image must have the same bytes as the one that the command line makes of the same plan.
"""

import filecmp
import os
import pathlib
import subprocess
import sys
import tempfile

import ray

import packfs_ray


def troubled(packfs, plan, index, store, jobs):
    """Packs a shard; shards 1, 2 and 3 have trouble at their first try."""
    tried = pathlib.Path(f"{store}.tried.{index}")
    is_first = not tried.exists()
    tried.touch()
    if is_first and index == 1:
        # The worker dies while its program runs on.
        subprocess.Popen([packfs, "pack-shard", plan, str(index), "--to", store, "-q"])
        os._exit(1)
    if is_first and index == 2:
        raise packfs_ray.TransientError("the first try fails")
    document = packfs_ray.pack_shard(packfs, plan, index, store, jobs)
    if index == 3:
        document = packfs_ray.pack_shard(packfs, plan, index, store, jobs)
        assert document["state"] == "present", document
    return document


def main():
    packfs, source = (str(pathlib.Path(path).absolute()) for path in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        run = lambda *words: subprocess.run([packfs, *words], check=True)
        run("plan", source, "--shards", "8", "--out", path("plan"), "-q")
        for index in range(8):
            run("pack-shard", path("plan"), str(index), "--to", path("plain"), "-q")
        run("merge", path("plan"), "--from", path("plain"), "-o", path("plain.sqfs"), "-q")
        ray.init(num_cpus=2, include_dashboard=False, runtime_env={"py_modules": [packfs_ray.__file__]})
        done = list(packfs_ray.pack_all(packfs, path("plan"), path("store"), work=troubled))
        assert sorted(shard["shard"] for shard in done) == list(range(8)), done
        run("merge", path("plan"), "--from", path("store"), "-o", path("ray.sqfs"), "-q")
        assert filecmp.cmp(path("plain.sqfs"), path("ray.sqfs"), shallow=False)
        print("same image:", os.path.getsize(path("ray.sqfs")), "bytes")
        ray.shutdown()


if __name__ == "__main__":
    main()
