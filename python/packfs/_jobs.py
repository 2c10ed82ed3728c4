"""Jobs: packing, merging, checking, and digests."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Optional, Union

from . import _packfs
from ._hints import worded

PathLike = Union[str, "os.PathLike[str]"]
Limits = Union["dict[str, Optional[int]]", Literal["none"], None]


class Progress(NamedTuple):
    """Progress of a job, as callbacks receive it. Totals are 0 while they are unknown."""

    #: "scan", "base", "order", "duplicates", "data", "metadata", "verify", or "hash".
    stage: str
    #: Files finished in this stage.
    files: int
    #: All files of this stage.
    files_total: int
    #: Bytes read or decoded in this stage.
    bytes: int
    #: All bytes of this stage.
    bytes_total: int
    #: Bytes written in this stage.
    bytes_out: int


Callback = Optional[Callable[[Progress], object]]


def _told(progress: Callback) -> Any:
    return None if progress is None else lambda *figures: progress(Progress(*figures))


def _given(values: dict[str, Any], *apart: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in apart and value is not None}


def pack(
    source: PathLike | list[PathLike] | Mapping[str, bytes | str],
    output: PathLike,
    *,
    format: str | None = None,
    codec: str | None = None,
    optimize: str | None = None,
    block_size: int | None = None,
    format_options: Mapping[str, Any] | None = None,
    kernel: str | None = None,
    made_at: int | str | None = None,
    order: str | None = None,
    order_file: PathLike | None = None,
    trace: PathLike | None = None,
    min_gain: int | None = None,
    effort: str | None = None,
    exclude: Sequence[str] | None = None,
    exclude_from: Sequence[PathLike] | None = None,
    include: Sequence[str] | None = None,
    ignore_files: Sequence[str] | None = None,
    strip_components: int | None = None,
    strip_prefix: PathLike | None = None,
    prefix: PathLike | None = None,
    add: Sequence[str] | None = None,
    add_manifest: Sequence[PathLike] | None = None,
    owner: str | None = None,
    root_owned: bool | None = None,
    uid: int | None = None,
    gid: int | None = None,
    uid_map: Sequence[str] | None = None,
    gid_map: Sequence[str] | None = None,
    mode: str | None = None,
    file_mode: str | None = None,
    dir_mode: str | None = None,
    mtime: float | None = None,
    clamp_mtime: float | None = None,
    xattrs: bool | None = None,
    xattr_include: Sequence[str] | None = None,
    xattr_exclude: Sequence[str] | None = None,
    file_contexts: PathLike | None = None,
    file_contexts_at: PathLike | None = None,
    whiteouts: str | None = None,
    one_file_system: bool | None = None,
    follow_symlinks: bool | None = None,
    base: PathLike | None = None,
    base_check: str | None = None,
    for_merging: bool | None = None,
    keep_going: bool | None = None,
    lossy: bool | None = None,
    jobs: int | None = None,
    memory: int | None = None,
    offset: int | None = None,
    max_size: int | None = None,
    fit: bool | None = None,
    verify: bool | None = None,
    sync: bool | None = None,
    limits: Limits = None,
    source_options: dict[str, Any] | None = None,
    progress: Callback = None,
    **further: Any,
) -> dict[str, Any]:
    """Packs a source into a new image, and returns the report, with the keys of ``packfs pack --json``.

    source: directory, archive (tar, zip, cpio), manifest, image, or URL of an image or archive; a list of paths that
        become entries of the root; or a dict of paths in the image and contents.
    output: path of the image. It appears when it is complete; a failure leaves what was there.

    The options have the names and values of ``packfs pack --help``, with _ for -:

    format: "squashfs", "erofs", "squashfs-legacy", "cramfs", "iso9660", "cloop"; by the extension of output.
    codec: codec and level, such as "zstd:19".
    optimize: "size", "balanced" (default), "read", or "build".
    block_size: bytes of a block, in EROFS of a cluster.
    format_options: options of the format, such as {"fragments": "always"}.
    kernel: uses only EROFS features of this Linux version, such as "6.1".
    made_at: time of the image in seconds since 1970, "newest" (default), or "now". SOURCE_DATE_EPOCH is the default
        if it is set, for clamp_mtime too.
    order: "similarity", "similarity:BYTES", "similarity:all", "kind", or "path"; order_file: a file of paths and
        priorities; trace: a file of paths to place first.
    min_gain: percent that a block must shrink by to be compressed. effort: "level" or "max".
    exclude, include: globs as in .gitignore; exclude_from: files of them; ignore_files: names of files that hold them
        for their directory.
    strip_components, strip_prefix, prefix: changes of paths.
    add, add_manifest: entries as lines of a manifest, such as "d /proc 0755 0 0", and files of them.
    owner, uid, gid: owner of everything, such as "0:0"; root_owned: the same as that; uid_map, gid_map: such as ["1000:0", "1001-1010:1"].
    mode, file_mode, dir_mode: permissions, such as "0644" or "u=rwX,go=rX".
    mtime, clamp_mtime: time of everything, and latest time, in seconds since 1970.
    xattrs: False drops extended attributes; xattr_include, xattr_exclude: globs of their names.
    file_contexts, file_contexts_at: file of SELinux labels, and the mount point it applies to.
    whiteouts: "overlayfs", "aufs", or "keep".
    one_file_system: leaves out other filesystems. follow_symlinks: packs targets of links.
    base: earlier image whose blocks are reused; base_check: "contents" or "times".
    for_merging: makes an EROFS image that others can follow in a merge.
    keep_going: continues after read errors. lossy: drops what the format cannot hold.
    jobs: threads; memory: bytes of memory. The image is the same for any.
    offset: offset of the image in output. max_size: bytes it may have; fit: compresses denser until it fits.
    verify: compares the image with the source; by default below 1 GiB. sync: waits for the disk, by default.
    limits, source_options: limits of the input, and the options of open() for a source that is an image.
    further: any other option of docs/guide/options.md.
    progress: called with a Progress about 20 times a second, on this thread. What it raises stops the job.

    Warnings are those of the module warnings. Ctrl-C stops the job. Raises OSError, ValueError, CorruptImage,
    LimitExceeded; Error with EINVAL for attributes that would be lost, and with EFBIG beyond max_size.
    """
    given = _given({**locals(), **further}, "source", "output", "progress", "further")
    contents = dict(source) if isinstance(source, Mapping) else source
    return _report(_packfs.pack(contents, output, given, _told(progress)))


def merge(
    images: Sequence[PathLike],
    output: PathLike,
    *,
    at: Mapping[str, PathLike] | None = None,
    on_conflict: Literal["error", "last"] | None = None,
    data: Literal["image", "flat", "devices"] | None = None,
    apply_whiteouts: bool | None = None,
    made_at: int | None = None,
    kernel: str | None = None,
    sync: bool | None = None,
    limits: Limits = None,
    progress: Callback = None,
) -> dict[str, Any]:
    """Merges SquashFS or EROFS images into one without decoding data, and returns the report of ``packfs merge --json``.

    images: paths of images of one format, codec, and block size; later ones lie over earlier ones.
    at: further images, by the directory that their root becomes.
    on_conflict: "error" (default) refuses paths that several images have, "last" keeps those of the last one.
    data: "image" (default) moves data; for EROFS "flat" stores images whole, "devices" leaves data in them.
    apply_whiteouts: has whiteouts of overlayfs hide what earlier images have.
    made_at: time of the image in seconds since 1970; by default the newest of any entry.
    kernel: Linux version that reads the EROFS image. sync: waits for the disk. progress: as for pack().

    Raises ValueError for images that do not fit together, Error for conflicts, UnsupportedImage, CorruptImage.
    """
    given = _given(locals(), "images", "output", "progress")
    if at is not None:
        given["at"] = dict(at)
    return _report(_packfs.merge(list(images), output, given, _told(progress)))


def check(image: PathLike, *, data: bool = True, progress: Callback = None, **options: Any) -> dict[str, Any]:
    """Checks an image, and returns the report of ``packfs check --json``: "sound", "errors", "findings", and others.

    data: also decodes all file data. progress: as for pack(). options: those of open().

    Damage is in the report. Raises OSError, UnsupportedImage, and CorruptImage if the image cannot be opened.
    """
    report = _report(_packfs.check(image, data, _given(options), _told(progress)))
    for finding in report["findings"]:
        finding["fault"] = worded(finding["fault"]) or finding["fault"]
    return report


def digest(
    source: PathLike, *, facts: Sequence[str] | None = None, progress: Callback = None, **options: Any
) -> str:
    """Returns the digest of a tree, the same for a directory, a tar archive, and an image, as ``packfs digest`` does.

    facts: attributes that it covers, of "mode", "owner", "mtime", "nanos", "xattrs", "links", "root"; by default all
        but "nanos". options: those of open().
    """
    return _packfs.digest(source, None if facts is None else list(facts), _given(options), _told(progress))


def composefs(
    source: PathLike,
    output: PathLike,
    *,
    objects: PathLike | None = None,
    require_fs_verity: bool = False,
    split_links: bool = False,
    exclude: Sequence[str] = (),
    include: Sequence[str] = (),
    uid: int | None = None,
    gid: int | None = None,
    mtime: float | None = None,
    source_options: dict[str, Any] | None = None,
    limits: Limits = None,
    jobs: int | None = None,
    progress: Callback = None,
) -> dict[str, Any]:
    """Makes a composefs image: metadata in the image, contents of files as objects in a directory.

    source: directory, archive, image, or manifest, as of pack().
    objects: directory that gets the objects; None makes the image alone.
    require_fs_verity: fails unless all objects have fs-verity.
    split_links: stores each name of a file with hard links as a file of its own, as mkcomposefs does.
    exclude, include, uid, gid, mtime, source_options, limits, jobs: as of pack().

    Returns the report, with the keys of ``packfs composefs pack --json``.
    """
    given = _given(locals(), "source", "output", "progress")
    given["exclude"], given["include"] = list(exclude), list(include)
    return _report(_packfs.composefs(source, output, given, _told(progress)))


def _report(text: str) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(text)
    return report
