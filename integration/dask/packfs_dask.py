#!/usr/bin/env python3
"""Packs the shards of a packfs plan as Dask tasks, and merges them.

    packfs plan /data --shards 32G --out /shared/plan
    python3 packfs_dask.py /shared/plan --to /shared/store --output /shared/data.sqfs

All workers need the program packfs, and see the source, the plan, and the store at the same paths.
Tasks that fail or lose their worker are tried again; a source that changed (exit code 5) and a wrong
request (2) are reported as they are.
"""

import argparse
import json
import pathlib
import subprocess
import sys

from dask.distributed import Client, LocalCluster, as_completed

RETRIES = 5
FINAL = (2, 4, 5)


class TransientError(Exception):
    """A failure that a retry may not have."""


def pack_shard(index, packfs, plan, store, jobs):
    """Packs one shard, and returns the document of `packfs pack-shard --json`, or the final failure."""
    command = [packfs, "pack-shard", plan, str(index), "--to", store, "--json", "--jobs", str(jobs)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return json.loads(done.stdout)
    what = f"shard {index}: exit code {done.returncode}: {done.stderr.strip()}"
    if done.returncode in FINAL:
        return {"shard": index, "state": what}
    raise TransientError(what)


def largest_first(plan):
    """Returns the numbers of the shards, those with most work first."""
    shards = json.loads((pathlib.Path(plan) / "plan.json").read_text())["shards"]
    return sorted(range(len(shards)), key=lambda n: -(shards[n]["file_bytes"] + 20_000 * shards[n]["entries"]))


def pack_all(client, packfs, plan, store, jobs=1, work=pack_shard):
    """Packs all shards as tasks, and yields their documents in the order they finish."""
    tasks = client.map(work, largest_first(plan), packfs=packfs, plan=plan, store=store, jobs=jobs,
                       retries=RETRIES, pure=False)
    for task in as_completed(tasks):
        yield task.result()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plan", help="folder of the plan")
    parser.add_argument("--to", required=True, metavar="STORE", help="store, a folder that all workers see")
    parser.add_argument("--output", metavar="IMAGE", help="merge the shards into this image")
    parser.add_argument("--jobs", type=int, default=1, help="threads of a task")
    parser.add_argument("--packfs", default="packfs", help="program on the workers")
    parser.add_argument("--address", help="Dask scheduler; without it, a local cluster is started")
    args = parser.parse_args()
    plan, store = (str(pathlib.Path(path).absolute()) for path in (args.plan, args.to))
    with Client(args.address or LocalCluster(threads_per_worker=1, dashboard_address=None)) as client:
        failed = 0
        for shard in pack_all(client, args.packfs, plan, store, args.jobs):
            print(f"shard {shard['shard']}: {shard['state']}")
            failed += "sidecar" not in shard
    if failed:
        return 1
    if args.output:
        merge = [args.packfs, "merge", plan, "--from", store, "--output", args.output]
        return subprocess.run(merge, check=False).returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
