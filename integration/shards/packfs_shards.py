"""The shards of a packfs plan as tasks of an engine: what packfs_ray.py and packfs_dask.py share."""

import argparse
import json
import os
import pathlib
import subprocess

RETRIES = 5
FINAL = {2: "wrong request", 4: "unsupported", 5: "the source changed since planning"}


class TransientError(Exception):
    """A failure that a retry may not have."""


class FinalError(Exception):
    """A failure that every retry would have."""


def pack_shard(index, packfs, plan, store, jobs):
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


def run(doc, pack_all):
    """Runs the program of an engine: pack_all(args) yields the documents of all shards."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("plan", help="folder of the plan")
    parser.add_argument("--to", required=True, metavar="STORE", help="store, a folder that all nodes see, or s3://...")
    parser.add_argument("--output", metavar="IMAGE", help="merge the shards into this image")
    parser.add_argument("--jobs", type=int, default=1, help="CPUs and threads of a task")
    parser.add_argument("--packfs", default="packfs", help="program on the nodes")
    parser.add_argument("--address", help="scheduler; without it, a local one is started")
    parser.add_argument("--workers", type=int, help="workers of a local scheduler (default: one for each CPU)")
    args = parser.parse_args()
    args.plan, args.to = (path if "://" in path else os.path.abspath(path) for path in (args.plan, args.to))
    try:
        for shard in pack_all(args):
            print(f"shard {shard['shard']}: {shard['state']}, {shard['sidecar']['size']} bytes")
    except (FinalError, TransientError) as error:
        # Ray puts its own traceback in front; the last line is that of packfs.
        parser.exit(1, f"{str(error).strip().splitlines()[-1]}\n")
    if args.output:
        merge = [args.packfs, "merge", args.plan, "--from", args.to, "--output", args.output]
        return subprocess.run(merge, check=False).returncode
    return 0
