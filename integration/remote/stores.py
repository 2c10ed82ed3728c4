#!/usr/bin/env python3
"""Reads and writes images in real stores of this machine, by packfs; prints a line for each check.

Stores that are not installed are named and skipped: moto_server (PyPI: moto[server]), versitygw (Go:
github.com/versity/versitygw/cmd/versitygw), docker-registry (Debian). Mounts need root.

    stores.py [--packfs PROGRAM] [STORE...]
"""

import argparse
import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KEY, SECRET = "packfs-key", "packfs-secret"
BUCKET = "images"
skipped, failed = [], []


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Store:
    """A server in a folder of its own; a context manager."""

    def __init__(self, name, words, port, folder, environment=()):
        self.name, self.port, self.folder = name, port, folder
        log = open(folder / "log", "w")
        self.server = subprocess.Popen(words, stdout=log, stderr=log, env={**os.environ, **dict(environment)})
        end = time.monotonic() + 60
        while time.monotonic() < end and self.server.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.1)
        sys.exit(f"{name} did not start: {(folder / 'log').read_text()[-500:]}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.terminate()
        self.server.wait()


class Bench:
    def __init__(self, packfs, folder):
        self.packfs, self.folder = packfs, folder
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        tree = folder / "tree"
        (tree / "a/b").mkdir(parents=True)
        (tree / "a/b/hello").write_text("hello\n")
        for number in range(8):
            (tree / f"noise-{number}").write_bytes(os.urandom(3 << 20))
        for name in ("root.sqfs", "root.erofs"):
            self.run("pack", tree, folder / name, "-q", "--lossy")
        self.uploads = "s3://BUCKET/KEY is uploaded" in " ".join(self.run("pack", "--help").stdout.split())

    def run(self, *words, **variables):
        environment = {**self.environment, **variables}
        words = [str(self.packfs), *map(str, words)]
        return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120, check=False)

    def check(self, what, is_right, run=None):
        print(f"{'ok' if is_right else 'FAILED'}: {what}", flush=True)
        if not is_right:
            failed.append(what)
            if run:
                print(f"  exit code {run.returncode}: {run.stdout[:300]} {run.stderr[:600]}")

    def digest(self, place, **variables):
        return self.run("digest", place, **variables).stdout.split(" ")[0]

    def s3(self, store):
        """Checks of a store with the interface of S3, which holds an empty bucket."""
        name, endpoint = store.name, f"http://127.0.0.1:{store.port}"
        keys = {"AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
        for image in ("root.sqfs", "root.erofs"):
            url, path = f"s3://{BUCKET}/dir/{image}", self.folder / image
            self.put(store, f"dir/{image}", path)
            run = self.run("cat", "--stats", url, "a/b/hello", **keys)
            stats = json.loads(run.stderr.splitlines()[-1]) if run.returncode == 0 else {}
            self.check(f"{name}: cat, {stats.get('remote_rounds')} rounds", run.stdout == "hello\n", run)
            self.check(f"{name}: digest of {image}", self.digest(url, **keys) == self.digest(path) != "")
            run = self.run("cache", "verify", **keys)
            self.check(f"{name}: cache", run.returncode == 0, run)
            if not self.uploads:
                continue
            url = f"s3://{BUCKET}/up/{image}"
            run = self.run("pack", self.folder / "tree", url, "-q", "--lossy", **keys)
            self.check(f"{name}: pack to {url}", run.returncode == 0, run)
            self.check(f"{name}: digest of it", self.digest(url, **keys) == self.digest(path) != "")
            run = self.run("pack", self.folder / "tree", url, "-q", "--lossy", **keys)
            self.check(f"{name}: an object is not replaced", run.returncode == 1 and "of this name" in run.stderr, run)
        self.merged(name, keys)
        url = f"s3://{BUCKET}/dir/root.erofs"
        for what, words, variables, code, text in (
            ("no such key", ("ls", url + "-none"), {}, 1, "no such object"),
            ("no such bucket", ("ls", "s3://none/key"), {}, 1, "no such object"),
            ("no such bucket to write to", ("pack", self.folder / "tree", "s3://none/a.sqfs", "--lossy"), {}, 1, "no such bucket"),
        ):
            if words[0] == "pack" and not self.uploads:
                skipped.append(f"{name}: this packfs does not write to S3")
                continue
            run = self.run(*words, **{**keys, **variables})
            self.check(f"{name}: {what}", run.returncode == code and text in run.stderr, run)
        if name != "moto":  # which signs nothing
            run = self.run("ls", "--disk-cache", "0", url, **{**keys, "AWS_SECRET_ACCESS_KEY": "wrong"})
            self.check(f"{name}: wrong secret", run.returncode == 1 and "refuses" in run.stderr and "wrong" not in run.stderr, run)
        self.changed(store, url, keys)

    def merged(self, name, keys):
        """Packs shards of a plan into a bucket, and merges them there."""
        plan = self.folder / f"plan-{name}"
        run = self.run("plan", self.folder / "tree", "--shards", 2, "--out", plan, "--format", "erofs", "--lossy", "-q")
        self.check(f"{name}: plan", run.returncode == 0, run)
        store, local = f"s3://{BUCKET}/shards", self.folder / f"store-{name}"
        for index in (0, 1):
            for place in (store, local):
                run = self.run("pack-shard", plan, index, "--to", place, "-q", **keys)
                self.check(f"{name}: shard {index} to {place}", run.returncode == 0, run)
        image, url = self.folder / f"{name}.erofs", f"s3://{BUCKET}/all.erofs"
        self.run("merge", plan, "--from", local, "-o", image, "-q")
        run = self.run("merge", plan, "--from", store, "-o", url, "--json", **keys)
        copied = json.loads(run.stdout)["moved_by_system_bytes"] if run.returncode == 0 else 0
        self.check(f"{name}: merge in the store, which copied {copied} bytes", copied > 10 << 20, run)
        self.check(f"{name}: digest of it", self.digest(url, **keys) == self.digest(image) != "")
        run = self.run("verify", plan, "--from", store, "--image", url, "-q", **keys)
        self.check(f"{name}: verify", run.returncode == 0, run)

    def changed(self, store, url, keys):
        """Replaces an object while it is mounted: reads fail, and no byte of the new one is seen."""
        if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
            skipped.append(f"{store.name}: mounts need root and /dev/fuse")
            return
        at = self.folder / "at"
        at.mkdir(exist_ok=True)
        run = self.run("mount", "--fuse", "--disk-cache", "0", url, at, **keys)
        self.check(f"{store.name}: mount", run.returncode == 0, run)
        if run.returncode != 0:
            return
        self.check(f"{store.name}: a mounted file", (at / "a/b/hello").read_text() == "hello\n")
        other = self.folder / "other.erofs"
        other.write_bytes(os.urandom((self.folder / "root.erofs").stat().st_size))
        self.put(store, "dir/root.erofs", other)
        wrong, errors = [], 0
        for number in range(8):
            try:
                found = (at / f"noise-{number}").read_bytes()
                wrong += [] if found == (self.folder / f"tree/noise-{number}").read_bytes() else [number]
            except OSError:
                errors += 1
        self.check(f"{store.name}: a replaced object fails {errors} of 8 files", errors > 0 and not wrong)
        self.run("umount", at)

    def put(self, store, key, path):
        import boto3

        client = boto3.client(
            "s3", endpoint_url=f"http://127.0.0.1:{store.port}", aws_access_key_id=KEY,
            aws_secret_access_key=SECRET, region_name="us-east-1",
        )
        if path is None:
            client.create_bucket(Bucket=BUCKET)
        else:
            client.put_object(Bucket=BUCKET, Key=key, Body=path.read_bytes())

    def registry(self, store):
        host = f"127.0.0.1:{store.port}"
        image = f"oci://{host}/team/root:v1"
        run = self.run("oci", "push", self.folder / "root.erofs", image)
        self.check("docker-registry: push", run.returncode == 0, run)
        run = self.run("cat", "--stats", image, "a/b/hello")
        self.check("docker-registry: cat", run.stdout == "hello\n", run)
        self.check("docker-registry: digest", self.digest(image) == self.digest(self.folder / "root.erofs"))
        if os.geteuid() == 0 and os.path.exists("/dev/fuse"):
            at = self.folder / "at"
            at.mkdir(exist_ok=True)
            run = self.run("mount", image, at)
            found = hashlib.sha256(b"".join((at / f"noise-{n}").read_bytes() for n in range(8))).digest()
            tree = self.folder / "tree"
            expected = hashlib.sha256(b"".join((tree / f"noise-{n}").read_bytes() for n in range(8))).digest()
            self.check("docker-registry: mount", found == expected, run)
            self.run("umount", at)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packfs", default=shutil.which("packfs"), help="the program to test")
    parser.add_argument("stores", nargs="*", help="moto, versitygw, docker-registry; all by default")
    args = parser.parse_args()
    if not args.packfs:
        sys.exit("stores.py: packfs is missing; --packfs names it")
    programs = {"moto": "moto_server", "versitygw": "versitygw", "docker-registry": "docker-registry"}
    for name, program in programs.items():
        if args.stores and name not in args.stores:
            continue
        if not shutil.which(program):
            skipped.append(f"{name}: {program} is not installed")
            continue
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
            folder = Path(folder)
            bench, port, data = Bench(Path(args.packfs).resolve(), folder), free_port(), folder / "data"
            data.mkdir()
            if name == "moto":
                words, environment = [program, "-H", "127.0.0.1", "-p", str(port)], {}
            elif name == "versitygw":
                words = [program, "--port", f"127.0.0.1:{port}", "posix", str(data)]
                environment = {"ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET}
            else:
                config = folder / "config.yml"
                config.write_text(
                    f"version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {data}}}}}\n"
                    f"http: {{addr: '127.0.0.1:{port}'}}\n"
                )
                words, environment = [program, "serve", str(config)], {}
            with Store(name, words, port, folder, environment) as store:
                if name == "docker-registry":
                    bench.registry(store)
                else:
                    bench.put(store, None, None)
                    bench.s3(store)
    for why in skipped:
        print(f"skipped: {why}")
    sys.exit(f"{len(failed)} checks failed" if failed else 0)


if __name__ == "__main__":
    main()
