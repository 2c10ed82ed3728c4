//! Options that leave out, rename, or change what is packed.

use super::Mark;
use super::time::{clamp, parse_time, source_date_epoch};
use super::values::{PATH, SWITCH, Values, file, on_off, parsed, text, words};
use packfs_core::{Error, Result, ResultExt, Timestamp};
use packfs_source::{Additions, FileContexts, IdMap, ModeChange, Shape, Whiteouts};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;

const GLOB: Values<String> = text("GLOB").many();
const MODE: Values<ModeChange> = parsed("MODE");
const TIME: Values<Timestamp> = Values::new("TIME", parse_time).with_dashes();
const ENTRY: Values<OsString> = Values::bytes("ENTRY", |text| Ok(text.to_owned())).many().with_dashes();
const MAPS: Values<Vec<IdMap>> = Values::new("MAP", |text| {
    let maps = text.split(',').map(|map| map.parse().map_err(|error: Error| error.to_string()));
    maps.collect()
})
.many();
const OWNER: Values<(u32, Option<u32>)> = Values::new("UID[:GID]", |text| match text.split_once(':') {
    Some((uid, gid)) => Ok((id(uid)?, Some(id(gid)?))),
    None => Ok((id(text)?, None)),
});

fn id(text: &str) -> Result<u32, String> {
    let refuse = |_| "not an id; use numbers such as 0:0 (names differ between machines)".to_owned();
    text.parse().map_err(refuse)
}

rows! { Shape;
    /// Exclude paths matching GLOB
    ///
    /// Globs are those of .gitignore. A directory is excluded with its contents. May be given
    /// several times.
    "exclude", GLOB, "Source" { marks: &[Mark::Common] }, |shape, glob| shape.exclude.push(glob);

    /// Include only paths matching GLOB
    ///
    /// A directory is included with its contents; directories above are kept. May be given several
    /// times.
    "include", GLOB, "Source" {}, |shape, glob| shape.include.push(glob);

    /// Exclude paths matching the globs in FILE
    ///
    /// One glob a line; # starts a comment. Globs are those of .gitignore.
    "exclude-from", file("FILE").many(), "Source" {},
    |shape, path| shape.exclude.extend(globs_of(&path)?);

    /// Read globs to exclude from files named NAME
    ///
    /// Such as .gitignore. The globs apply to the directory of the file.
    "ignore-file", text("NAME").many(), "Source" { also: &["ignore-files"] },
    |shape, name| shape.ignore_files.push(name);

    /// Remove N leading directories from every path
    ///
    /// Paths with fewer directories are left out.
    "strip-components", parsed::<usize>("N"), "Source" { default: "0", marks: &[Mark::Whole] },
    |shape, count| shape.strip_components = count;

    /// Pack only the tree below PATH, as the root
    "strip-prefix", PATH, "Source" {}, |shape, path| shape.strip_prefix = path;

    /// Place everything below PATH in the image
    "prefix", PATH, "Source" {}, |shape, path| shape.prefix = path;

    /// Add the entries in FILE, one a line as for --add
    ///
    /// A FILE of - is standard input. A manifest header is optional. Host files in it are relative
    /// to the folder of FILE. Entries of --add come after these.
    "add-manifest", file("FILE").many(), "Source" { marks: &[Mark::Stdin] },
    |shape, path| add_manifest(&mut shape.additions, &path)?;

    /// Add an entry, such as 'd /proc 0755 0 0'
    ///
    /// ENTRY is a line of a manifest, or one of these:
    ///   d PATH MODE UID GID                directory
    ///   f PATH MODE UID GID HOSTFILE       file
    ///   l PATH 0777 UID GID TARGET         symbolic link
    ///   h PATH TARGET                      hard link
    ///   c|b PATH MODE UID GID MAJOR MINOR  character or block device
    ///   p|s PATH MODE UID GID              fifo or socket
    ///   m PATH MODE UID GID                new mode and owner of an entry
    ///
    /// PATH is a path in the image, which --exclude, --prefix and similar options do not change. An
    /// existing entry is replaced; a directory keeps its contents. Attributes in the entry override
    /// --owner, --mode, --mtime and similar options. Needs no root, applies to any SOURCE, and may
    /// be given several times; the last entry for a path counts.
    "add", ENTRY, "Source" { marks: &[Mark::Common] },
    |shape, entry| shape.additions.add(&[entry.as_encoded_bytes()], "--add")?;

    /// Set the user of everything, and with :GID the group
    ///
    /// Numbers, such as 0:0, because names differ between machines. UID alone keeps the group.
    "owner", OWNER, "Metadata" { conflicts: &["uid", "gid"] }, |shape, (uid, gid)| {
        shape.uid = Some(uid);
        shape.gid = gid.or(shape.gid);
    };

    /// Set the user of everything
    "uid", parsed::<u32>("UID"), "Metadata" {}, |shape, uid| shape.uid = Some(uid);

    /// Set the group of everything
    "gid", parsed::<u32>("GID"), "Metadata" {}, |shape, gid| shape.gid = Some(gid);

    /// Set user 0 and group 0 for everything
    ///
    /// The same as --owner 0:0.
    "root-owned", SWITCH, "Metadata" { conflicts: &["owner", "uid", "gid"], marks: &[Mark::Common] },
    |shape, yes| if yes {
        (shape.uid, shape.gid) = (Some(0), Some(0));
    };

    /// Map users: FROM:TO or FIRST-LAST:TO
    ///
    /// FIRST-LAST:TO maps FIRST to TO, FIRST+1 to TO+1, and so on. Separate several maps by commas.
    /// Has no effect with --uid or --owner.
    "uid-map", MAPS, "Metadata" {}, |shape, maps| shape.uid_map.extend(maps);

    /// Map groups: FROM:TO or FIRST-LAST:TO
    ///
    /// As --uid-map. Has no effect with --gid or with a group in --owner.
    "gid-map", MAPS, "Metadata" {}, |shape, maps| shape.gid_map.extend(maps);

    /// Set permissions of everything but symlinks
    ///
    /// Octal, or symbolic as for chmod: u=rwX,go=rX.
    "mode", MODE, "Metadata" {}, |shape, mode| {
        shape.file_mode = Some(mode.clone());
        shape.dir_mode = Some(mode);
    };

    /// Set permissions of all but directories and symlinks
    ///
    /// MODE as for --mode, which it overrides.
    "file-mode", MODE, "Metadata" {}, |shape, mode| shape.file_mode = Some(mode);

    /// Set permissions of directories
    ///
    /// MODE as for --mode, which it overrides.
    "dir-mode", MODE, "Metadata" {}, |shape, mode| shape.dir_mode = Some(mode);

    /// Set the modification time of everything
    "mtime", TIME, "Metadata" { marks: &[Mark::Common] }, |shape, time| shape.mtime = Some(time);

    /// Limit modification times to at most TIME
    ///
    /// The default is SOURCE_DATE_EPOCH, unless --mtime is given.
    "clamp-mtime", TIME, "Metadata" {}, |shape, time| shape.mtime_max = Some(time);

    /// Keep extended attributes (default)
    ///
    /// Overrides an earlier --no-xattrs.
    "xattrs", on_off("Drop extended attributes"), "Metadata" { marks: &[Mark::Common] },
    |shape, yes| {
        shape.xattr_exclude.retain(|glob| glob != ALL);
        if !yes {
            shape.xattr_exclude.push(ALL.to_owned());
        }
    };

    /// Keep only extended attributes matching GLOB
    ///
    /// Such as 'user.*'.
    "xattr-include", GLOB, "Metadata" {}, |shape, glob| shape.xattr_include.push(glob);

    /// Drop extended attributes matching GLOB
    "xattr-exclude", GLOB, "Metadata" {}, |shape, glob| shape.xattr_exclude.push(glob);

    /// Set SELinux labels from a file_contexts file
    ///
    /// Paths are those in the image. The labels replace those of the source.
    "file-contexts", file("FILE"), "Metadata" {},
    |shape, path| shape.file_contexts = Some(Arc::new(FileContexts::read(&path)?));

    /// Set the mount point that file_contexts applies to
    ///
    /// The mount point of the image in the running system, such as /vendor: policies name paths
    /// from the root of the system.
    "file-contexts-at", PATH, "Metadata" { needs: Some("file-contexts") }, |shape, at| {
        let contexts = shape.file_contexts.take().ok_or("file-contexts is needed before it".to_owned())?;
        shape.file_contexts = Some(Arc::new(Arc::unwrap_or_clone(contexts).mounted_at(at)));
    };

    /// Convert whiteouts to overlayfs or aufs form, or keep them
    ///
    /// Whiteouts mark deleted files in layers of containers. overlayfs writes character devices 0:0
    /// and attributes of opaque directories; aufs writes .wh.NAME. The source may have either form.
    /// keep changes nothing; the default is the same, with a warning about names like .wh.NAME.
    "whiteouts", words::<Whiteouts>("STYLE"), "Format" { marks: &[Mark::Whole] }, |shape, style| shape.whiteouts = Some(style);

    /// Stay on the filesystem of SOURCE
    ///
    /// Mount points become empty directories.
    "one-file-system", SWITCH, "Source" { short: Some('x') }, |shape, yes| shape.one_file_system = yes;

    /// Replace symbolic links by their targets
    "follow-symlinks", SWITCH, "Source" { short: Some('L'), marks: &[Mark::Whole] }, |shape, yes| shape.follow_symlinks = yes;
}

/// Glob of all extended attributes.
const ALL: &str = "*";

/// Returns changes by names and texts, as [`crate::PackOptions::of_texts`] does.
///
/// Errors: as there.
pub fn shape_of_texts<T: AsRef<OsStr>>(
    texts: impl IntoIterator<Item = (impl AsRef<str>, T)>,
) -> Result<Shape> {
    let mut shape = super::Options::with_texts(Shape::default(), texts)?;
    clamp(&mut shape, source_date_epoch::<i64>()?);
    Ok(shape)
}

fn add_manifest(additions: &mut Additions, path: &Path) -> Result<()> {
    if path == Path::new("-") {
        additions.add_text(&mut std::io::stdin().lock(), "standard input")
    } else {
        additions.add_file(path)
    }
}

/// Returns the lines of a file. Blank lines and comments are ignored when globs are compiled.
fn globs_of(path: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(path).or_io(|| format!("cannot read {path:?}"))?;
    Ok(text.lines().map(str::to_owned).collect())
}
