#!/usr/bin/env python3
"""Packs the shards of a packfs plan as Ray tasks, and merges them.

    packfs plan /data --shards 32G --out /shared/plan
    python3 packfs_ray.py /shared/plan --to /shared/store --output /shared/data.sqfs --jobs 4

All nodes need the program packfs, and see the source, the plan, and the store at the same paths. No
data passes through Ray's object store: tasks return what packfs reports as JSON. Tasks that fail or
lose their worker are tried again; a source that changed (exit code 5) and a wrong request (2) are not.
"""

import sys

import ray

import packfs_shards as shards

IN_FLIGHT = 1000


def pack_all(args, work=shards.pack_shard):
    """Packs all shards as tasks, and yields their documents in the order they finish."""
    ray.init(address=args.address, num_cpus=args.workers, runtime_env={"py_modules": [shards.__file__]})
    task = ray.remote(num_cpus=args.jobs, max_retries=shards.RETRIES, retry_exceptions=[shards.TransientError])(work)
    waiting, running = shards.largest_first(args.plan)[::-1], []
    while waiting or running:
        while waiting and len(running) < IN_FLIGHT:
            running.append(task.remote(waiting.pop(), args.packfs, args.plan, args.to, args.jobs))
        done, running = ray.wait(running)
        yield from ray.get(done)


if __name__ == "__main__":
    sys.exit(shards.run(__doc__, pack_all))
