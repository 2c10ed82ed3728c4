"""Images of very many entries. PACKFS_ENTRIES sets the number; 10^6 takes about a minute."""

import os
import random

import packfs

ENTRIES = int(os.environ.get("PACKFS_ENTRIES", "20000"))


def test_many_entries(tmp_path):
    names = [f"{n // 1000:04}/{n:07}.txt" for n in range(ENTRIES)]
    packfs.pack({name: name for name in names}, tmp_path / "many.erofs", codec="lz4", verify=False, limits="none")
    with packfs.open(tmp_path / "many.erofs", limits="none") as image:
        found = [entry for entry in image.find() if entry.is_file()]
        assert len(found) == ENTRIES
        assert sum(len(files) for _, _, files in image.walk()) == ENTRIES
        chosen = random.Random(4).sample(found, 10_000)
        assert image.read_many(chosen) == [entry.path.encode() for entry in chosen]
        assert len(image.positions(found)) == ENTRIES
