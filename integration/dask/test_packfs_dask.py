#!/usr/bin/env python3
"""Tries packfs_dask.py on a local Dask cluster: one worker dies, one task raises, one shard is packed twice.

    python3 test_packfs_dask.py PACKFS DIR

The merged image must have the same bytes as the one that the command line makes of the same plan.
"""

import filecmp
import os
import pathlib
import subprocess
import sys
import tempfile

from dask.distributed import Client, LocalCluster

import packfs_dask


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
        raise packfs_dask.TransientError("the first try fails")
    document = packfs_dask.pack_shard(index, packfs, plan, store, jobs)
    if index == 3:
        document = packfs_dask.pack_shard(index, packfs, plan, store, jobs)
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
        # Nannies start workers that died anew.
        cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
        with cluster, Client(cluster) as client:
            client.upload_file(packfs_dask.__file__)
            done = list(packfs_dask.pack_all(client, packfs, path("plan"), path("store"), work=troubled))
        assert sorted(shard["shard"] for shard in done) == list(range(8)), done
        run("merge", path("plan"), "--from", path("store"), "-o", path("dask.sqfs"), "-q")
        assert filecmp.cmp(path("plain.sqfs"), path("dask.sqfs"), shallow=False)
        print("same image:", os.path.getsize(path("dask.sqfs")), "bytes")


if __name__ == "__main__":
    main()
