"""Data sets of PyTorch over images. PyTorch itself is not imported: its DataLoader takes these classes as they are.

>>> data = PackfsDataset("photos.sqfs", labels=True)
>>> loader = torch.utils.data.DataLoader(
...     data, batch_size=64, num_workers=2, sampler=WindowSampler(data.disk_order(), window=4096))
"""

from __future__ import annotations

import os
import random
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from ._image import Image, PathLike
from ._image import open as open_image
from ._packfs import classes


class PackfsDataset:
    """Files of an image as samples, by index.

    image: path or URL of an image. Each worker opens it for itself, when it reads its first sample.
    root: directory whose files are the samples, sorted by path.
    suffixes: endings of names to keep, such as (".jpg", ".png"); None keeps all.
    paths: the samples themselves, in this order, instead of a search below root.
    transform: function of the contents (bytes) and returns the sample, such as a decoder of images.
    labels: makes samples pairs of the result of transform and the number of the class, which is the directory below
        root, as in torchvision's ImageFolder.
    open_options: options of packfs.open().

    The DataLoader requests a batch by __getitems__(), which decodes all of it at once. Samples are held as one string
    of bytes and arrays of numbers, so that workers of a fork share them. The image must not be replaced meanwhile.
    """

    def __init__(
        self,
        image: PathLike,
        root: str = "",
        *,
        suffixes: Sequence[str] | None = None,
        paths: Iterable[str] | None = None,
        transform: Callable[[bytes], Any] | None = None,
        labels: bool = False,
        open_options: dict[str, Any] | None = None,
    ) -> None:
        self._place = image
        self._options = open_options or {}
        self._opened: Image | None = None
        self.transform = transform
        self.root = root.strip("/")
        # Inodes and lengths of what was found: samples need not be searched by their paths.
        self._ends, self._ids, self._sizes = array("Q"), array("Q"), array("Q")
        if paths is None:
            endings = None if suffixes is None else tuple(suffixes)
            self._names, *numbers = self.image._raw.files(self.root, endings)
            for column, values in zip((self._ends, self._ids, self._sizes), numbers):
                column.frombytes(values)
        else:
            encoded = [os.fsencode(path) for path in paths]
            self._names = b"".join(encoded)
            self._ends.extend(accumulate(map(len, encoded)))
        #: Names of the classes, sorted; a label is an index of this list.
        self.classes: list[str] = []
        self._labels = array("L")
        if labels:
            self.classes, numbered = classes(self._names, self._ends, os.fsencode(self.root))
            self._labels.extend(numbered)
        # Workers of a fork open it for themselves.
        self._opened = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    @property
    def image(self) -> Image:
        """The image, opened when it is first needed."""
        if self._opened is None:
            self._opened = open_image(self._place, **self._options)
        return self._opened

    def path(self, index: int) -> str:
        """Returns the path of a sample."""
        index = range(len(self))[index]
        return os.fsdecode(self._names[self._ends[index - 1] if index else 0 : self._ends[index]])

    @property
    def paths(self) -> list[str]:
        """Paths of all samples."""
        return [self.path(index) for index in range(len(self))]

    def disk_order(self) -> list[int]:
        """Returns the indices of all samples in the order of their data in the image."""
        if self._ids:
            return self.image._raw.disk_order(self._ids, self._sizes)
        places = self.image.positions(self.paths)
        return sorted(range(len(self)), key=places.__getitem__)

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, index: int) -> Any:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Returns the samples of a batch, decoded together, in the order of indices."""
        contents: Iterable[Any] = self._read(indices)
        if self.transform is not None:
            contents = map(self.transform, contents)
        if not self._labels:
            return list(contents)
        return [(sample, self._labels[index]) for sample, index in zip(contents, indices)]

    def _files(self, indices: Iterable[int]) -> list[Any]:
        """Returns samples as the image takes them."""
        if self._ids:
            return [(self._ids[index], self._sizes[index]) for index in indices]
        return [self.path(index) for index in indices]

    def _read(self, indices: Sequence[int]) -> list[Any]:
        try:
            return self.image._raw.read_many(self._files(indices), [], False)
        except OSError:
            # Reading by path names the file in its message.
            return self.image.read_many([self.path(index) for index in indices])


class WindowSampler:
    """Indices in random order within windows of neighbors on disk, so that each block is decoded about once an epoch.

    order: indices in the order of their data, as PackfsDataset.disk_order() returns them.
    window: samples in a window. Windows come in random order, and samples within a window, too; the borders of
        windows move from epoch to epoch. The larger, the more random; len(order) shuffles everything.
    seed: with the same seed, all replicas and all runs have the same order.
    rank, num_replicas: takes each num_replicas-th index, from rank on; the last few are left out so that all
        replicas have as many.

    Iterating goes through one epoch, and then begins the next one.
    """

    def __init__(
        self, order: Sequence[int], *, window: int = 4096, seed: int = 0, rank: int = 0, num_replicas: int = 1
    ) -> None:
        if window < 1:
            raise ValueError(f"window: {window}; at least 1 is allowed")
        if not 0 <= rank < num_replicas:
            raise ValueError(f"rank: {rank}; 0 to {num_replicas - 1} are allowed")
        self.order = array("Q", order)
        self.window, self.seed, self.rank, self.num_replicas = window, seed, rank, num_replicas
        #: Number of the epoch that began last, or that comes first.
        self.epoch = 0
        self._begun = False
        self._skipped = 0

    def __len__(self) -> int:
        """Number of indices of an epoch for this replica."""
        return len(self.order) // self.num_replicas

    def set_epoch(self, epoch: int) -> None:
        """Sets the number of the epoch that comes next, from its start."""
        self.epoch, self._begun, self._skipped = epoch, False, 0

    def state_dict(self, samples: int) -> dict[str, int]:
        """Returns the state after `samples` samples of the epoch that began last.

        The caller counts the samples that it was given, because a DataLoader requests indices ahead of need.
        """
        is_over = samples >= len(self)
        return {"epoch": self.epoch + is_over, "samples": 0 if is_over else samples, "seed": self.seed}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Continues from a state: the next epoch begins after the samples that it counts."""
        self.set_epoch(state["epoch"])
        self._skipped, self.seed = state["samples"], state["seed"]

    def _shuffled(self) -> Iterator[int]:
        chance = random.Random(f"{self.seed} {self.epoch}")
        shift = chance.randrange(self.window)
        starts = list(range(-shift, len(self.order), self.window))
        chance.shuffle(starts)
        for start in starts:
            window = self.order[max(start, 0) : start + self.window]
            chance.shuffle(window)
            yield from window

    def __iter__(self) -> Iterator[int]:
        self.epoch += self._begun
        self._begun = True
        skipped, self._skipped = self._skipped, 0
        count = len(self) * self.num_replicas
        for position, index in zip(range(count), self._shuffled()):
            number, rank = divmod(position, self.num_replicas)
            if rank == self.rank and number >= skipped:
                yield index
