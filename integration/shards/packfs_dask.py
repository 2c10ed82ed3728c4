#!/usr/bin/env python3
"""Packs the shards of a packfs plan as Dask tasks, and merges them.

    packfs plan /data --shards 32G --out /shared/plan
    python3 packfs_dask.py /shared/plan --to /shared/store --output /shared/data.sqfs

All workers need the program packfs, and see the source, the plan, and the store at the same paths.
Tasks that fail or lose their worker are tried again; a source that changed (exit code 5) and a wrong
request (2) are not.
"""

import sys

from dask.distributed import Client, LocalCluster, as_completed

import packfs_shards as shards


def final_as_value(work, index, *args):
    """Dask retries every exception: one that every retry would have becomes a result."""
    try:
        return work(index, *args)
    except shards.FinalError as error:
        return error


def pack_all(args, work=shards.pack_shard):
    """Packs all shards as tasks, and yields their documents in the order they finish."""
    cluster = args.address or LocalCluster(n_workers=args.workers, threads_per_worker=1, dashboard_address=None)
    with Client(cluster) as client:
        client.upload_file(shards.__file__)
        tasks = [client.submit(final_as_value, work, index, args.packfs, args.plan, args.to, args.jobs,
                               retries=shards.RETRIES, pure=False) for index in shards.largest_first(args.plan)]
        for task in as_completed(tasks):
            result = task.result()
            if isinstance(result, shards.FinalError):
                raise result
            yield result


if __name__ == "__main__":
    sys.exit(shards.run(__doc__, pack_all))
