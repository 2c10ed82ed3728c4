"""Opened images, and files in them."""

from __future__ import annotations

import errno
import io
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, Callable, Literal, Union, overload

from ._packfs import Entry, RawFile, RawImage
from ._path import Path, select

if TYPE_CHECKING:

    class _Binary(io.RawIOBase, BinaryIO):
        """The base that type checkers see of a file of bytes, as the module io has it."""

else:
    _Binary = io.RawIOBase

PathLike = Union[str, "os.PathLike[str]"]

#: Errors of paths that are not there.
_MISSING = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
#: Bytes that File.peek() returns, from which lines are cut.
PEEK_LEN = 8192


def open(
    place: PathLike | Any,
    *,
    offset: int | None = None,
    length: int | None = None,
    part: str | None = None,
    outer: bool = False,
    magic: bytes | None = None,
    devices: Sequence[PathLike] | None = None,
    subvolume: str | None = None,
    snapshot: str | None = None,
    partition_table: Literal["mbr", "gpt"] | None = None,
    no_journal: bool = False,
    ignore_log: bool = False,
    backing: Sequence[PathLike] | None = None,
    objects: Sequence[PathLike] | None = None,
    ignore_checksum: bool = False,
    root_hash: str | None = None,
    trust: PathLike | None = None,
    jobs: int | None = None,
    cache_bytes: int | None = None,
    readahead_bytes: int | None = None,
    limits: dict[str, int | None] | Literal["none"] | None = None,
    disk_cache: int | None = None,
    offline: bool = False,
    platform: str | None = None,
    plain_http: bool = False,
) -> Image:
    """Opens an image of any format.

    place: path, URL (http, https, s3), OCI image (oci://REF, oci-layout:DIR, docker-archive:FILE), or file object
        (seekable, of bytes; it stays open, and must not be used otherwise meanwhile). It need not be closed.
    offset, length: place of the image in the file, in bytes; the default is all of it.
    part: name of one of several images, such as the partition "p2"; outer: opens a container itself.
    magic: bytes that the image is read as if it began with, such as b"hsqs".
    devices: further files with data of the image.
    subvolume: path or number of a subvolume (btrfs).
    snapshot: name or number of a snapshot (qcow2).
    partition_table: the table of a disk to read; the default is the one that Linux reads.
    no_journal, ignore_log: two names of one option, which reads ext3, ext4, XFS, and btrfs as they are on disk,
        without the changes in their journals and logs.
    backing: backing files of a qcow2 image or parents of a VHD, in order.
    objects: directories with the objects of a composefs image.
    ignore_checksum: continues if the checksum of the image is wrong.
    root_hash: hexadecimal dm-verity root hash that every block is checked against; trust: file of the public key whose
        signature the root hash beside the image has.
    jobs: threads that decode; the default is one for each CPU.
    cache_bytes: bytes of decoded blocks in memory; the default is 32 MiB.
    readahead_bytes: bytes decoded ahead of a reader; the default is 2 MiB.
    limits: limits by name, such as {"max_entries": 1000}; None lifts one, "none" all of them.
    disk_cache: bytes of the disk cache for images at URLs; the default is 2 GiB, 0 turns it off.
    offline: reads images at URLs from the disk cache only.
    platform: the one of an OCI image for several platforms, such as "linux/arm64"; plain_http: HTTP without TLS to
        its registry.

    Raises OSError if the image cannot be read, UnsupportedImage if no format knows it, CorruptImage if it is damaged.
    """
    given = {name: value for name, value in locals().items() if name != "place" and value is not None}
    return Image(place, given)


class Image:
    """An opened image; see open().

    May be used from several threads at once: what one has decoded serves all. A child of fork() opens it anew when it
    first uses it. Pickling stores the place and the options, and opens the image where it is unpickled.

    Paths are relative to the root of the image: "etc/hosts" and "/etc/hosts" are the same, "" is the root. Symbolic
    links are followed within the image. Names that are not UTF-8 have surrogate escapes, as in the module os.
    """

    def __init__(self, place: PathLike | Any, options: dict[str, Any] | None = None) -> None:
        self._place = place
        self._options = options or {}
        self._raw = RawImage(place, self._options)

    def __reduce__(self) -> tuple[Any, ...]:
        return Image, (self._place, self._options)

    def __enter__(self) -> Image:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __contains__(self, path: PathLike | Entry) -> bool:
        """True if there is an entry of this path; the last link is not followed."""
        try:
            self._raw.stat(path, False)
        except OSError as error:
            if error.errno in _MISSING:
                return False
            raise
        return True

    def __iter__(self) -> Iterator[Entry]:
        """Yields all entries but the root, as find() has them."""
        return iter(self.find())

    def __truediv__(self, path: PathLike) -> Path:
        return Path(self, path)

    def __repr__(self) -> str:
        state = "closed" if self.closed else self.format
        return f"<packfs.Image {self._place!r} {state}>"

    def close(self) -> None:
        """Closes the image. Files that were opened in it stay open until they are closed."""
        self._raw.close()

    @property
    def closed(self) -> bool:
        """True if the image is closed."""
        return self._raw.closed

    @property
    def format(self) -> str:
        """Name of the format, such as "squashfs"."""
        return self._raw.format()

    @property
    def warnings(self) -> list[str]:
        """Warnings about the image, such as changes in a journal that were not applied."""
        return self._raw.warnings()

    @property
    def counters(self) -> dict[str, int]:
        """Statistics of reading since the image was opened, with the keys of ``packfs --stats``."""
        counters: dict[str, int] = json.loads(self._raw.counters())
        return counters

    def stat(self, path: PathLike | Entry, *, follow_symlinks: bool = True) -> Entry:
        """Returns the metadata of a path.

        Raises FileNotFoundError, NotADirectoryError.
        """
        return self._raw.stat(path, follow_symlinks)

    def exists(self, path: PathLike) -> bool:
        """True if there is such a path, and its links lead to something."""
        return self._kind(path) is not None

    def is_file(self, path: PathLike) -> bool:
        """True for a regular file, or a link to one."""
        return self._kind(path) == "file"

    def is_dir(self, path: PathLike) -> bool:
        """True for a directory, or a link to one."""
        return self._kind(path) == "directory"

    def _kind(self, path: PathLike) -> str | None:
        try:
            return self._raw.stat(path, True).kind
        except OSError as error:
            if error.errno in _MISSING:
                return None
            raise

    def readlink(self, path: PathLike) -> str:
        """Returns the target of a symbolic link.

        Raises OSError with EINVAL for anything else.
        """
        return self._raw.readlink(path)

    def xattrs(self, path: PathLike, *, follow_symlinks: bool = True) -> dict[str, bytes]:
        """Returns the extended attributes of a path by their full names, such as "user.comment"."""
        return self._raw.xattrs(path, follow_symlinks)

    def listdir(self, path: PathLike = "") -> list[str]:
        """Returns the names in a directory, in stored order.

        Raises FileNotFoundError, NotADirectoryError.
        """
        return [entry.name for entry in self._raw.scandir(path)]

    def scandir(self, path: PathLike = "") -> list[Entry]:
        """Returns the entries of a directory with their metadata, in stored order. Links are not followed.

        Raises FileNotFoundError, NotADirectoryError.
        """
        return self._raw.scandir(path)

    def find(self, path: PathLike = "", *, maxdepth: int | None = None) -> list[Entry]:
        """Returns everything below a directory, in no particular order; maxdepth 1 is the directory's own entries.

        Faster than walk(), and holds all entries in memory, about 200 bytes each.
        """
        return self._raw.find(path, (1 << 62) if maxdepth is None else maxdepth)

    def walk(
        self, top: PathLike = "", *, onerror: Callable[[OSError], object] | None = None
    ) -> Iterator[tuple[str, list[str], list[str]]]:
        """Yields (directory, names of directories, names of others) for each directory, as os.walk() does.

        Links are not followed. A caller that removes names of directories keeps them from being visited. Errors are
        ignored unless onerror is given, which may raise.
        """
        waiting = [os.fspath(top)]
        while waiting:
            at = waiting.pop()
            try:
                entries = self._raw.scandir(at)
            except OSError as error:
                if onerror is not None:
                    onerror(error)
                continue
            dirs = [entry.name for entry in entries if entry.is_dir()]
            yield at, dirs, [entry.name for entry in entries if not entry.is_dir()]
            waiting.extend(f"{at}/{name}" if at else name for name in reversed(dirs))

    def read(self, path: PathLike | Entry, start: int | None = None, end: int | None = None) -> bytes:
        """Returns the contents of a file, or bytes start to end of it, as a slice has them.

        Raises FileNotFoundError, IsADirectoryError, CorruptImage.
        """
        return self._raw.read(path, (start, end))

    def read_bytes(self, path: PathLike | Entry) -> bytes:
        """Returns the contents of a file, as pathlib does."""
        return self.read(path)

    def read_text(self, path: PathLike | Entry, encoding: str | None = None, errors: str | None = None) -> str:
        """Returns the text of a file, with line ends as "\\n"."""
        with self.open(path, "r", encoding=encoding, errors=errors) as file:
            return file.read()

    def glob(self, pattern: str) -> Iterator[str]:
        """Yields the paths that match a pattern of pathlib; ``**`` is any number of directories."""
        return select(self, "", pattern)

    @overload
    def read_many(self, paths: Iterable[PathLike | Entry]) -> list[bytes]: ...
    @overload
    def read_many(self, paths: Iterable[PathLike | Entry], *, on_error: str) -> list[bytes | Exception]: ...
    def read_many(self, paths: Iterable[PathLike | Entry], *, on_error: str = "raise") -> list[Any]:
        """Returns the contents of files, in the order of paths.

        All threads decode at once, in the order of the image, without the GIL: far faster than one read() after the
        other. Each block is decoded once. The result is as large as the files together.

        on_error: "raise" raises the first error; "return" puts the exceptions of single files into the list.
        """
        return self._raw.read_many(list(paths), [], _keeps(on_error))

    def cat_ranges(
        self,
        paths: Sequence[PathLike | Entry],
        starts: int | None | Sequence[int | None],
        ends: int | None | Sequence[int | None],
        *,
        on_error: str = "raise",
    ) -> list[Any]:
        """Returns bytes start to end of each file, as read_many() returns whole files.

        starts, ends: a number for each path, or one for all; None is the start or the end of the file, negative
            numbers count from its end.
        """
        bounds = list(zip(_for_each(starts, len(paths)), _for_each(ends, len(paths))))
        if len(bounds) != len(paths):
            raise ValueError(f"{len(paths)} paths, but {len(bounds)} starts and ends")
        return self._raw.read_many(list(paths), bounds, _keeps(on_error))

    @overload
    def open(
        self, path: PathLike | Entry, mode: Literal["rb"] = "rb", *, encoding: None = None, errors: None = None
    ) -> File: ...
    @overload
    def open(
        self,
        path: PathLike | Entry,
        mode: Literal["r", "rt"],
        *,
        encoding: str | None = None,
        errors: str | None = None,
    ) -> io.TextIOWrapper: ...
    @overload
    def open(
        self, path: PathLike | Entry, mode: str, *, encoding: str | None = None, errors: str | None = None
    ) -> Any: ...
    def open(
        self, path: PathLike | Entry, mode: str = "rb", *, encoding: str | None = None, errors: str | None = None
    ) -> Any:
        """Opens a file: mode "rb" returns a File, mode "r" a text file.

        Raises FileNotFoundError, IsADirectoryError; OSError with EROFS for modes that write.
        """
        if mode not in ("r", "rt", "rb"):
            if set(mode) & set("wax+"):
                raise OSError(30, "the image is read-only", os.fspath(path))
            raise ValueError(f"invalid mode: {mode!r}")
        file = File(self._raw.open(path), os.fspath(path))
        if mode == "rb":
            return file
        return io.TextIOWrapper(file, encoding=encoding, errors=errors)

    def positions(self, paths: Iterable[PathLike | Entry]) -> list[int]:
        """Returns the offset in the image of the first byte of each file, to read files in this order.

        Files of one compressed block have the same offset. Empty files and holes have 0.
        """
        return self._raw.positions(list(paths))


def _keeps(on_error: str) -> bool:
    if on_error not in ("raise", "return"):
        raise ValueError(f'on_error: {on_error!r}; "raise" and "return" are allowed')
    return on_error == "return"


def _for_each(bound: Any, count: int) -> Sequence[Any]:
    return [bound] * count if bound is None or isinstance(bound, int) else bound


class File(_Binary):
    """A file of an image, opened for reading; see Image.open().

    Reads without a buffer of its own, because decoded blocks are cached: read(n) returns n bytes unless the file ends.
    A file has one position, so each thread should open its own, or use read_at().
    """

    mode = "rb"

    def __init__(self, raw: RawFile, name: str) -> None:
        self._raw = raw
        self._name = name
        #: Length in bytes.
        self.size = raw.size

    @property
    def name(self) -> str:
        """Path in the image."""
        return self._name

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """Returns the position in bytes."""
        self._check()
        return self._raw.position

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Sets the position, relative to the start (0), the position (1), or the end (2); returns it."""
        self._check()
        if whence not in (0, 1, 2):
            raise ValueError(f"invalid whence: {whence}")
        target = offset + (0, self._raw.position, self.size)[whence]
        if target < 0:
            raise OSError(22, f"negative position {target}")
        self._raw.seek(target)
        return target

    def read(self, size: int | None = -1, /) -> bytes:
        """Returns up to size bytes from the position; all that follow if size is negative or None."""
        if self.closed:
            self._check()
        return self._raw.read(size)

    read1 = read

    def readall(self) -> bytes:
        """Returns all bytes from the position on."""
        return self.read()

    def readinto(self, buffer: Any, /) -> int:
        """Fills a buffer from the position; returns the number of bytes."""
        self._check()
        return self._raw.readinto(buffer)

    readinto1 = readinto

    def read_at(self, offset: int, size: int) -> bytes:
        """Returns up to size bytes from an offset, from any thread. The position stays."""
        self._check()
        return self._raw.read_at(offset, size)

    def peek(self, size: int = 0, /) -> bytes:
        """Returns bytes from the position without moving it."""
        return self.read_at(self._raw.position, max(size, PEEK_LEN))

    def write(self, data: Any, /) -> int:
        """Raises io.UnsupportedOperation, as files do that are open for reading."""
        raise io.UnsupportedOperation("not writable")

    def _check(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file")
