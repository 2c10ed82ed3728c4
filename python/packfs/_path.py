"""Paths in images, as pathlib and importlib.resources have them."""

from __future__ import annotations

import fnmatch
import io
import os
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, overload

if TYPE_CHECKING:
    from ._image import File, Image
    from ._packfs import Entry


def select(image: Image, top: str, pattern: str) -> Iterator[str]:
    """Yields the paths below a directory that match a pattern of pathlib; ``**`` is any number of directories.

    Links are not followed by ``**``.
    """
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if not parts or pattern.startswith("/") or ".." in parts:
        raise ValueError(f"unacceptable pattern: {pattern!r}")
    # Several "**" in a row are one.
    parts = [part for part, before in zip(parts, [None, *parts]) if part != "**" or before != "**"]
    # Without repetitions, in the order found.
    return iter(dict.fromkeys(_matches(image, top, tuple(parts))))


def _matches(image: Image, at: str, parts: tuple[str, ...]) -> Iterator[str]:
    part, rest = parts[0], parts[1:]
    below = f"{at}/" if at else ""
    if part == "**":
        # All at once: it leads through no directory twice, however an image is made.
        entries = image.find(at)
        if not rest:
            yield from (entry.path for entry in entries)
            return
        for directory in [at, *(entry.path for entry in entries if entry.is_dir())]:
            yield from _matches(image, directory, rest)
        return
    has_wildcards = re.search(r"[*?[]", part)
    for name in fnmatch.filter(image.listdir(at), part) if has_wildcards else [part]:
        path = below + name
        if not rest and (has_wildcards or path in image):
            yield path
        elif rest and image.is_dir(path):
            yield from _matches(image, path, rest)


class Path:
    """A path in an image: ``image / "etc/hosts"``. After zipfile.Path, pathlib, and importlib.resources.abc.Traversable.

    Links are followed within the image, as Image does. Two are equal if they have one path in one Image.
    """

    def __init__(self, image: Image, at: str | os.PathLike[str] = "") -> None:
        #: The image.
        self.image = image
        path = PurePosixPath(os.fspath(at).strip("/"))
        self._path = path if ".." not in path.parts else _refused(at)

    def __str__(self) -> str:
        return "" if self._path == PurePosixPath() else str(self._path)

    def __fspath__(self) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"packfs.Path({self.image!r}, {str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Path) and (self.image is other.image and self._path == other._path)

    def __hash__(self) -> int:
        return hash((id(self.image), self._path))

    def __lt__(self, other: Path) -> bool:
        return self._path < other._path

    @property
    def name(self) -> str:
        """Last part of the path; empty for the root."""
        return self._path.name

    @property
    def stem(self) -> str:
        """Name without its last suffix."""
        return self._path.stem

    @property
    def suffix(self) -> str:
        """Last suffix of the name, with its dot."""
        return self._path.suffix

    @property
    def suffixes(self) -> list[str]:
        """All suffixes of the name."""
        return self._path.suffixes

    @property
    def parts(self) -> tuple[str, ...]:
        """Parts of the path; none for the root."""
        return self._path.parts

    @property
    def parent(self) -> Path:
        """The directory above; that of the root is the root."""
        return Path(self.image, self._path.parent)

    @property
    def parents(self) -> tuple[Path, ...]:
        """All directories above, the nearest first."""
        return tuple(Path(self.image, parent) for parent in self._path.parents)

    def joinpath(self, *others: str | os.PathLike[str]) -> Path:
        """Returns a path below this one."""
        return Path(self.image, self._path.joinpath(*(os.fspath(other).lstrip("/") for other in others)))

    def __truediv__(self, other: str | os.PathLike[str]) -> Path:
        return self.joinpath(other)

    def with_name(self, name: str) -> Path:
        """Returns a path with another last part."""
        return Path(self.image, self._path.with_name(name))

    def with_suffix(self, suffix: str) -> Path:
        """Returns a path with another last suffix."""
        return Path(self.image, self._path.with_suffix(suffix))

    def relative_to(self, other: Path | str) -> PurePosixPath:
        """Returns the path below another one. Raises ValueError if it is not below it."""
        return self._path.relative_to(str(other))

    def is_relative_to(self, other: Path | str) -> bool:
        """True if it is below another path, or that path."""
        return self._path.is_relative_to(str(other))

    def match(self, pattern: str) -> bool:
        """True if the path matches a pattern, as pathlib has it."""
        return self._path.match(pattern)

    def stat(self, *, follow_symlinks: bool = True) -> Entry:
        """Returns the metadata."""
        return self.image.stat(str(self), follow_symlinks=follow_symlinks)

    def exists(self) -> bool:
        """True if there is such a path, and its links lead to something."""
        return self.image.exists(str(self))

    def is_file(self) -> bool:
        """True for a regular file, or a link to one."""
        return self.image.is_file(str(self))

    def is_dir(self) -> bool:
        """True for a directory, or a link to one."""
        return self.image.is_dir(str(self))

    def is_symlink(self) -> bool:
        """True for a symbolic link."""
        return str(self) in self.image and self.stat(follow_symlinks=False).is_symlink()

    def readlink(self) -> str:
        """Returns the target of a symbolic link."""
        return self.image.readlink(str(self))

    def iterdir(self) -> Iterator[Path]:
        """Yields the entries of a directory, in stored order."""
        return (self.joinpath(name) for name in self.image.listdir(str(self)))

    def glob(self, pattern: str) -> Iterator[Path]:
        """Yields the paths below that match a pattern of pathlib; ``**`` is any number of directories."""
        return (Path(self.image, path) for path in select(self.image, str(self), pattern))

    def rglob(self, pattern: str) -> Iterator[Path]:
        """Yields the paths at any depth that match a pattern."""
        return self.glob(f"**/{pattern}")

    @overload
    def open(
        self, mode: Literal["r", "rt"] = "r", *, encoding: str | None = None, errors: str | None = None
    ) -> io.TextIOWrapper: ...
    @overload
    def open(self, mode: Literal["rb"], *, encoding: None = None, errors: None = None) -> File: ...
    @overload
    def open(self, mode: str, *, encoding: str | None = None, errors: str | None = None) -> Any: ...
    def open(self, mode: str = "r", *, encoding: str | None = None, errors: str | None = None) -> Any:
        """Opens a file: mode "r" returns a text file, as pathlib does, mode "rb" a File."""
        return self.image.open(str(self), mode, encoding=encoding, errors=errors)

    def read_bytes(self) -> bytes:
        """Returns the contents of a file."""
        return self.image.read_bytes(str(self))

    def read_text(self, encoding: str | None = None, errors: str | None = None) -> str:
        """Returns the text of a file."""
        return self.image.read_text(str(self), encoding, errors)


def _refused(at: object) -> PurePosixPath:
    raise ValueError(f'a path in an image has no "..": {at!r}')
