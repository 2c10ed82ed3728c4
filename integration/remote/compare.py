#!/usr/bin/env python3
"""Reads an image over a slow line by packfs and by its rivals; prints a table of Markdown.

Each program mounts the same image on a web server (nginx) that is 20 ms and 100 Mbit/s away, and a
reader gets the first byte of a file deep in the tree, 200 files drawn by lot, or everything by tar.
Times begin before the mount. The first run of a row finds empty caches, the second one those that
the first has left on disk; the page cache is dropped before both. Bytes are those that the line
brought, requests those that the server logged. What readers get is compared with the source.

Needs root, nginx, and of the rivals those that are to be measured; the others are listed as missing.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from link import ADDRESSES, CLIENT, SERVER, Link, inside

PORT = 8080
FILES = 200
SEED = 20
# What is served: programs in the order in which they start. `-` before a word: the program of packfs.
# {url}: the image, {site}: the folder on the server, {image}: its name, {at}: the mount, {below}: the
# mount of the site, {cache}: a folder that stays between the cold and the warm run.
HTTPDIRFS = "httpdirfs -f --cache --cache-location {cache} {site} {below}"
RCLONE = (
    "rclone mount --read-only --vfs-cache-mode full --cache-dir {cache} --no-checksum "
    "--http-url {site} :http: {below}"
)
MOUNTS = [
    ("packfs mount, SquashFS", "root.sqfs", ["PACKFS mount --fuse --foreground {url} {at}"]),
    ("squashfuse_ll over httpdirfs", "root.sqfs", [HTTPDIRFS, "squashfuse_ll -f {below}/{image} {at}"]),
    ("squashfuse_ll over rclone mount", "root.sqfs", [RCLONE, "squashfuse_ll -f {below}/{image} {at}"]),
    ("ratarmount, SquashFS", "root.sqfs", ["ratarmount -f --index-folders {cache} {url} {at}"]),
    ("packfs mount, EROFS", "root.erofs", ["PACKFS mount --fuse --foreground {url} {at}"]),
    ("erofsfuse over httpdirfs", "root.erofs", [HTTPDIRFS, "erofsfuse -f --dbglevel=0 {below}/{image} {at}"]),
    ("erofsfuse over rclone mount", "root.erofs", [RCLONE, "erofsfuse -f --dbglevel=0 {below}/{image} {at}"]),
]
# Works without a mount: arguments of packfs, by work.
PLAIN = {"first": "PACKFS cat {url} {deep}", "all": "PACKFS tar {url}"}
WORKS = {
    "first": ("first byte", "head -c 1 {at}/{deep}"),
    "files": (f"{FILES} files", "xargs -0 cat < {list}"),
    "all": ("tar of all", "tar cf - -C {at} . | cat"),
}


def chosen(tree):
    """Returns the deepest regular file, and files drawn by lot, relative to the tree."""
    found = sorted(path for path in tree.rglob("*") if path.is_file() and not path.is_symlink())
    paths = [path.relative_to(tree) for path in found]
    deep = max(paths, key=lambda path: (len(path.parts), str(path)))
    return str(deep), [str(path) for path in random.Random(SEED).sample(paths, FILES)]


class Bench:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.log = folder / "access.log"
        self.deep, files = chosen(args.tree)
        self.list = folder / "list"
        self.expected = {
            "first": hashlib.sha256((args.tree / self.deep).read_bytes()[:1]).hexdigest(),
            "files": self.digest_of(files),
        }
        self.files = files

    def digest_of(self, files):
        digest = hashlib.sha256()
        for path in files:
            digest.update((self.args.tree / path).read_bytes())
        return digest.hexdigest()

    def serve(self):
        config = self.folder / "nginx.conf"
        config.write_text(
            f"daemon off; pid {self.folder}/nginx.pid; error_log {self.folder}/error.log; user root;\n"
            "events {}\n"
            "http { log_format short '$request_method $status $http_range';\n"
            f"access_log {self.log} short; sendfile on; tcp_nopush on; keepalive_requests 1000000;\n"
            f"server {{ listen {ADDRESSES[SERVER]}:{PORT}; root {self.args.images}; autoindex on;\n"
            # httpdirfs reads nothing from servers that do not say so with each range.
            "add_header Accept-Ranges bytes; } }\n"
        )
        return subprocess.Popen(inside(SERVER, ["nginx", "-c", str(config)]))

    def words(self, line, image, at, below, cache):
        site = f"http://{ADDRESSES[SERVER]}:{PORT}/"
        line = line.format(
            url=site + image, site=site, image=image, at=at, below=below, cache=cache, deep=self.deep, list=self.list
        )
        return line.replace("PACKFS", str(self.args.packfs), 1)

    def requests(self):
        # The server logs an answer once it is sent.
        time.sleep(0.3)
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return len(lines)

    def run(self, steps, work, image, cache):
        """Mounts, reads, and unmounts; returns the figures, or the reason why there are none."""
        at, below = (Path(tempfile.mkdtemp(dir=self.folder)) for _ in range(2))
        self.list.write_bytes(b"".join(os.fsencode(at / path) + b"\0" for path in self.files))
        subprocess.run(["sync"], check=True)
        Path("/proc/sys/vm/drop_caches").write_text("3")
        environment = dict(os.environ, XDG_CACHE_HOME=str(cache), HOME=str(cache))
        before = (self.requests(), Link.received())
        started, servers = time.monotonic(), []
        try:
            # The last one mounts the image, the one before it the site.
            for line, place in zip(steps, [below, at][-len(steps) :]):
                words = inside(CLIENT, self.words(line, image, at, below, cache).split())
                with open(self.folder / "servers.log", "a") as log:
                    server = subprocess.Popen(words, env=environment, stdout=log, stderr=log)
                servers.append((server, place))
                if not self.wait_for(place, server):
                    return {"failed": f"{words[2]} did not mount"}
            line = WORKS[work][1] if steps else PLAIN[work]
            line = self.words(line, image, at, below, cache)
            command = inside(CLIENT, ["sh", "-c", line + " | sha256sum"])
            if not steps and work == "first":
                command = inside(CLIENT, ["sh", "-c", line + " | head -c 1 | sha256sum"])
            try:
                done = subprocess.run(
                    command, env=environment, capture_output=True, text=True, timeout=self.args.limit
                )
            except subprocess.TimeoutExpired:
                return {"failed": f"over {self.args.limit} s"}
            took = time.monotonic() - started
            digest = done.stdout.split(" ")[0]
            if done.stderr or digest != self.expected.get(work, digest):
                return {"failed": f"wrong bytes: {done.stderr[:200]}"}
        finally:
            self.end(servers, [at, below])
        after = (self.requests(), Link.received())
        return {"seconds": took, "requests": after[0] - before[0], "bytes": after[1] - before[1]}

    def wait_for(self, place, server):
        end = time.monotonic() + self.args.limit
        while time.monotonic() < end and server.poll() is None:
            if os.path.ismount(place):
                return True
            time.sleep(0.002)
        return False

    @staticmethod
    def end(servers, places):
        """Unmounts, and ends the servers, which would do so themselves."""
        for server, place in reversed(servers):
            subprocess.run(["umount", "-l", place], stderr=subprocess.DEVNULL)
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.send_signal(signal.SIGTERM)
                try:
                    server.wait(10)
                except subprocess.TimeoutExpired:
                    server.kill()
                    server.wait()
        for place in places:
            place.rmdir()

    def measure(self, name, image, steps, works):
        missing = [line.split()[0] for line in steps if not shutil.which(line.split()[0].replace("PACKFS", "sh"))]
        for work in works:
            cache = Path(tempfile.mkdtemp(dir=self.folder))
            for state in ("cold", "warm"):
                found = {"failed": f"{missing[0]} is not installed"} if missing else self.run(steps, work, image, cache)
                yield {"program": name, "image": image, "work": work, "cache": state, **found}
                if "failed" in found:
                    break
            shutil.rmtree(cache)


def table(rows):
    print("| program | work | cold: s | requests | MB | warm: s | requests | MB |")
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    found = {}
    for row in rows:
        found.setdefault((row["program"], row["work"]), {})[row["cache"]] = row
    for (program, work), states in found.items():
        cells = []
        for state in ("cold", "warm"):
            row = states.get(state)
            if row is None:
                cells += ["", "", ""]
            elif "failed" in row:
                cells += [row["failed"], "", ""]
            else:
                cells += [f"{row['seconds']:.2f}", str(row["requests"]), f"{row['bytes'] / 1e6:.1f}"]
        print(f"| {program} | {WORKS[work][0]} | {' | '.join(cells)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path, help="tree that the images hold")
    parser.add_argument("images", type=Path, help="folder with root.sqfs and root.erofs")
    parser.add_argument("--packfs", type=Path, default=shutil.which("packfs"), help="the program to measure")
    parser.add_argument("--round-trip", type=float, default=20, help="in milliseconds, default 20")
    parser.add_argument("--rate", type=float, default=100, help="in Mbit/s, default 100")
    parser.add_argument("--limit", type=float, default=120, help="seconds for a run, default 120")
    parser.add_argument("--only", default="", help="measure programs whose names contain this")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    args = parser.parse_args()
    if os.geteuid() != 0 or not shutil.which("nginx") or not args.packfs:
        sys.exit("compare.py: root, nginx, and packfs (--packfs) are needed")
    args.tree, args.images, args.packfs = args.tree.resolve(), args.images.resolve(), Path(args.packfs).resolve()
    rows = []
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder, Link(args.round_trip / 1000, args.rate * 1e6):
        bench = Bench(args, Path(folder))
        server = bench.serve()
        time.sleep(0.5)
        try:
            plain = [(f"packfs cat, tar: {kind}", image, [], list(PLAIN)) for kind, image in
                     (("SquashFS", "root.sqfs"), ("EROFS", "root.erofs"))]
            mounts = [(*mount, list(WORKS)) for mount in MOUNTS]
            for name, image, steps, works in mounts + plain:
                if args.only in name:
                    for row in bench.measure(name, image, steps, works):
                        print(json.dumps(row), file=sys.stderr, flush=True)
                        rows.append(row)
        finally:
            server.terminate()
            server.wait()
    table(rows)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
