#!/usr/bin/env python3
"""Packs the shards of a packfs plan as Ray tasks, and merges them.

    packfs plan /data --shards 32G --out /shared/plan
    python3 packfs_ray.py /shared/plan --to /shared/store --output /shared/data.sqfs --cpus 4

All nodes need the program packfs, and see the source, the plan, and the store at the same paths. No
data passes through Ray's object store: tasks return what packfs reports as JSON. Tasks that fail or
lose their worker are tried again; a source that changed (exit code 5) and a wrong request (2) are not.
"""

import argparse
import json
import pathlib
import subprocess
import sys

import ray

RETRIES = 5
FINAL = {2: "wrong request", 4: "unsupported", 5: "the source changed since planning"}


class TransientError(Exception):
    """A failure that a retry may not have."""


class FinalError(Exception):
    """A failure that every retry would have."""


def pack_shard(packfs, plan, index, store, jobs):
    """Packs one shard, and returns the document of `packfs pack-shard --json`."""
    command = [packfs, "pack-shard", plan, str(index), "--to", store, "--json", "--jobs", str(jobs)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return json.loads(done.stdout)
    kind = FinalError if done.returncode in FINAL else TransientError
    raise kind(f"shard {index}: exit code {done.returncode}: {done.stderr.strip()}")


def largest_first(plan):
    """Returns the numbers of the shards, those with most work first."""
    shards = json.loads((pathlib.Path(plan) / "plan.json").read_text())["shards"]
    return sorted(range(len(shards)), key=lambda n: -(shards[n]["file_bytes"] + 20_000 * shards[n]["entries"]))


def pack_all(packfs, plan, store, cpus=1, in_flight=1000, work=pack_shard):
    """Packs all shards as tasks, and yields their documents in the order they finish."""
    task = ray.remote(num_cpus=cpus, max_retries=RETRIES, retry_exceptions=[TransientError])(work)
    waiting, running = largest_first(plan)[::-1], []
    while waiting or running:
        while waiting and len(running) < in_flight:
            running.append(task.remote(packfs, plan, waiting.pop(), store, cpus))
        done, running = ray.wait(running)
        yield from ray.get(done)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plan", help="folder of the plan")
    parser.add_argument("--to", required=True, metavar="STORE", help="store, a folder that all nodes see")
    parser.add_argument("--output", metavar="IMAGE", help="merge the shards into this image")
    parser.add_argument("--cpus", type=int, default=1, help="CPUs and threads of a task")
    parser.add_argument("--packfs", default="packfs", help="program on the nodes")
    parser.add_argument("--address", help="Ray cluster; without it, a local one is started")
    args = parser.parse_args()
    plan, store = (str(pathlib.Path(path).absolute()) for path in (args.plan, args.to))
    ray.init(address=args.address)
    for shard in pack_all(args.packfs, plan, store, args.cpus):
        print(f"shard {shard['shard']}: {shard['state']}, {shard['sidecar']['size']} bytes")
    if args.output:
        merge = [args.packfs, "merge", plan, "--from", store, "--output", args.output]
        return subprocess.run(merge, check=False).returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
