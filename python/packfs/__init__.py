"""Compressed read-only filesystem images: pack, open, read, merge, and check them.

>>> import packfs
>>> packfs.pack({"etc/hostname": "example\\n"}, "root.sqfs")["files"]
1
>>> with packfs.open("root.sqfs") as image:
...     image.read("etc/hostname")
b'example\\n'

An image is a file, a block device, a URL (``http://``, ``https://``, ``s3://BUCKET/KEY``), or a file object. Its
format is detected: SquashFS, EROFS, ISO 9660, cramfs, ext4, XFS, btrfs, and others.

:func:`open` returns an :class:`Image`, and ``image / "etc/hosts"`` a :class:`Path`. :func:`pack`, :func:`merge`,
:func:`check`, and :func:`digest` are the jobs that the command ``packfs`` has under the same names; :func:`composefs`
is ``packfs composefs pack``. ``packfs.fs`` is a filesystem of fsspec for URLs such as
``packfs://etc/hostname::root.sqfs``; ``packfs.torch`` reads images as data sets.

Every failure that concerns files is an OSError with an error number: FileNotFoundError, IsADirectoryError,
NotADirectoryError, and others of Python, and Error with its subclasses CorruptImage, UnsupportedImage, and
LimitExceeded. Wrong arguments are ValueError and TypeError.
"""

from ._image import File, Image, open
from ._jobs import Progress, check, composefs, digest, merge, pack
from ._packfs import VERSION as __version__
from ._packfs import CorruptImage, Entry, Error, LimitExceeded, UnsupportedImage
from ._path import Path

__all__ = [
    "CorruptImage",
    "Entry",
    "Error",
    "File",
    "Image",
    "LimitExceeded",
    "Path",
    "Progress",
    "UnsupportedImage",
    "__version__",
    "check",
    "composefs",
    "digest",
    "merge",
    "open",
    "pack",
]
