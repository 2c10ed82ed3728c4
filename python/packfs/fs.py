"""Filesystem of fsspec over an image: the protocol ``packfs``.

>>> import fsspec
>>> with fsspec.open("packfs://etc/hostname::file://root.sqfs", "rt") as file:
...     file.read()
'example\\n'

The image may lie in any filesystem of fsspec. Local files, and URLs of http, https, and s3 without options, are read
by packfs itself; all others through their file objects.
"""

from __future__ import annotations

import datetime
import os
from typing import Any

import fsspec
from fsspec.spec import AbstractFileSystem

from ._image import File, Image
from ._image import open as open_image
from ._packfs import Entry

#: Protocols that packfs reads itself.
NATIVE = ("http", "https", "s3")

EROFS = 30


def _image(fo: Any, protocol: str | None, options: dict[str, Any] | None, opening: dict[str, Any]) -> Image:
    if not isinstance(fo, (str, os.PathLike)):
        return open_image(fo, **opening)
    place = os.fspath(fo)
    scheme = protocol or (place.split("://", 1)[0] if "://" in place else "file")
    if scheme in ("file", "local") and not options:
        return open_image(place.removeprefix(f"{scheme}://"), **opening)
    if scheme in NATIVE and not options:
        return open_image(place if "://" in place else f"{scheme}://{place}", **opening)
    return open_image(fsspec.open(place, "rb", protocol=protocol, **(options or {})).open(), **opening)


class PackfsFileSystem(AbstractFileSystem):
    """Files of an image. Paths are relative to its root, without a slash before them.

    fo: path, URL, or file object of the image.
    target_protocol, target_options: filesystem that fo is in, as fsspec passes them for chained URLs.
    open_options: options of packfs.open(), such as {"part": "p2"}.

    Everything that would write raises OSError with EROFS. Instances are pickled by these arguments.
    """

    protocol = "packfs"
    root_marker = ""
    cachable = True

    def __init__(
        self,
        fo: Any = "",
        target_protocol: str | None = None,
        target_options: dict[str, Any] | None = None,
        open_options: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if fo == "":
            raise ValueError("no image is given; a chained URL is packfs://PATH::IMAGE")
        self.fo = fo
        #: The opened image.
        self.image = _image(fo, target_protocol, target_options, open_options or {})

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        stripped = super()._strip_protocol(path)
        return [one.lstrip("/") for one in stripped] if isinstance(stripped, list) else stripped.lstrip("/")

    @property
    def fsid(self) -> str:
        """Identity of the filesystem."""
        return f"packfs_{self._fs_token}"

    def _details(self, entry: Entry, name: str, *, is_link: bool) -> dict[str, Any]:
        kind = {"directory": "directory", "file": "file"}.get(entry.kind, "other")
        details: dict[str, Any] = {
            "name": name,
            "size": entry.st_size,
            "type": kind,
            "created": entry.st_mtime,
            "islink": is_link,
        }
        for field in ("mode", "uid", "gid", "mtime", "ino", "nlink"):
            details[field] = getattr(entry, f"st_{field}")
        if is_link:
            details["destination"] = self.image.readlink(name)
        return details

    def _listed(self, entry: Entry) -> dict[str, Any]:
        details = self._details(entry, entry.path, is_link=entry.is_symlink())
        if entry.is_symlink():
            try:
                details["size"] = self.image.stat(entry.path).st_size
            except OSError:
                details["size"] = 0
        return details

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Returns name, size, type, mode, owner, and times of a path; links are followed."""
        path = self._strip_protocol(path)
        own = self.image.stat(path, follow_symlinks=False)
        if not own.is_symlink():
            return self._details(own, path, is_link=False)
        return self._details(self.image.stat(path), path, is_link=True)

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """Lists a directory, or returns the details of a file."""
        path = self._strip_protocol(path)
        try:
            entries = self.image.scandir(path)
        except NotADirectoryError:
            return [self.info(path) if detail else path]
        return [self._listed(entry) if detail else entry.path for entry in entries]

    def find(
        self, path: str, maxdepth: int | None = None, withdirs: bool = False, detail: bool = False, **_: Any
    ) -> Any:
        """Lists all files below a path, in one pass over the image."""
        if maxdepth is not None and maxdepth < 1:
            raise ValueError("maxdepth must be at least 1")
        path = self._strip_protocol(path)
        try:
            entries = self.image.find(path, maxdepth=maxdepth)
        except NotADirectoryError:
            return {path: self.info(path)} if detail else [path]
        except FileNotFoundError:
            return {} if detail else []
        found = {entry.path: entry for entry in entries if withdirs or not entry.is_dir()}
        names = sorted(found)
        if not detail:
            return [path, *names] if withdirs and path else names
        details = {name: self._listed(found[name]) for name in names}
        return {path: self.info(path), **details} if withdirs and path else details

    def du(
        self, path: str, total: bool = True, maxdepth: int | None = None, withdirs: bool = False, **_: Any
    ) -> Any:
        """Returns the bytes of all files below a path, or those of each."""
        sizes = {
            name: details["size"]
            for name, details in self.find(path, maxdepth=maxdepth, withdirs=withdirs, detail=True).items()
        }
        return sum(sizes.values()) if total else sizes

    def exists(self, path: str, **_: Any) -> bool:
        """True if there is such a path, and its links lead to something."""
        return self.image.exists(self._strip_protocol(path))

    def lexists(self, path: str, **_: Any) -> bool:
        """True if there is such a path, even a broken link."""
        try:
            self.image.stat(self._strip_protocol(path), follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def islink(self, path: str) -> bool:
        """True for a symbolic link."""
        try:
            return self.image.stat(self._strip_protocol(path), follow_symlinks=False).is_symlink()
        except OSError:
            return False

    def modified(self, path: str) -> datetime.datetime:
        """Returns the modification time."""
        return datetime.datetime.fromtimestamp(self.info(path)["mtime"], tz=datetime.timezone.utc)

    #: Images hold no other time.
    created = modified

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        """Returns the contents of a file, or a part of them."""
        return self.image.read(self._strip_protocol(path), start, end)

    def cat(self, path: Any, recursive: bool = False, on_error: str = "raise", **kwargs: Any) -> Any:
        """Returns the contents of files, decoded together; see AbstractFileSystem.cat()."""
        paths = self.expand_path(path, recursive=recursive, **kwargs)
        if len(paths) == 1 and not isinstance(path, list) and paths[0] == self._strip_protocol(path):
            return self.cat_file(paths[0])
        if recursive:
            paths = [one for one in paths if not self.image.is_dir(one)]
        contents = self.image.read_many(paths, on_error="raise" if on_error == "raise" else "return")
        pairs = zip(paths, contents)
        return {name: one for name, one in pairs if on_error != "omit" or not isinstance(one, Exception)}

    def cat_ranges(
        self, paths: list[str], starts: Any, ends: Any, max_gap: Any = None, on_error: str = "return", **_: Any
    ) -> list[Any]:
        """Returns ranges of files, decoded together without the GIL."""
        if not isinstance(paths, list):
            raise TypeError(f"paths: a list is allowed, not {type(paths).__name__}")
        paths = [self._strip_protocol(path) for path in paths]
        return self.image.cat_ranges(paths, starts, ends, on_error=on_error)

    def _open(self, path: str, mode: str = "rb", **_: Any) -> File:
        if mode != "rb":
            raise _read_only(path)
        file: File = self.image.open(path)
        return file

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        """Raises OSError with EROFS."""
        raise _read_only(path)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Raises OSError with EROFS."""
        raise _read_only(path)

    def rmdir(self, path: str) -> None:
        """Raises OSError with EROFS."""
        raise _read_only(path)

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        """Raises OSError with EROFS."""
        raise _read_only(path)

    def rm_file(self, path: str) -> None:
        """Raises OSError with EROFS."""
        raise _read_only(path)

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        """Raises OSError with EROFS."""
        raise _read_only(path2)

    def mv(self, path1: str, path2: str, **_: Any) -> None:
        """Raises OSError with EROFS."""
        raise _read_only(path2)

    def put_file(self, lpath: str, rpath: str, *_: Any, **__: Any) -> None:
        """Raises OSError with EROFS."""
        raise _read_only(rpath)

    def pipe_file(self, path: str, value: bytes, *_: Any, **__: Any) -> None:
        """Raises OSError with EROFS."""
        raise _read_only(path)

    def touch(self, path: str, truncate: bool = True, **_: Any) -> None:
        """Raises OSError with EROFS."""
        raise _read_only(path)


def _read_only(path: Any) -> OSError:
    return OSError(EROFS, "the image is read-only", str(path))
