//! squashfuse, squashfuse_ll, snapfuse and erofsfuse, as `packfs mount --outer --fuse`;
//! mount.erofs, as `packfs mount --outer`.

use crate::common::parse::{Given, Row, Style, Takes, acts, ignored, parse, refused};
use crate::common::usage;
use packfs::{Error, Result};
use packfs_terminal::{Outcome, report};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

const ROWS: &[Row] = &[
    acts("-h --help", Takes::Nothing),
    acts("-V --version", Takes::Nothing),
    acts("-f", Takes::Nothing),
    acts("-d", Takes::Nothing),
    ignored("-s", Takes::Nothing),
    acts("-o", Takes::One),
    acts("--offset", Takes::One),
    acts("--device", Takes::One),
    ignored("--dbglevel", Takes::One),
];

const MOUNT_ROWS: &[Row] = &[
    acts("-h --help", Takes::Nothing),
    acts("-V --version", Takes::Nothing),
    acts("-o", Takes::One),
    acts("-t", Takes::One),
    acts("-u", Takes::Nothing),
    ignored("-d", Takes::One),
    ignored("-f -n -s -v", Takes::Nothing),
    refused("--reattach --disconnect", Takes::Nothing, "packfs mount serves an image without a block device"),
];

/// FUSE options without effect on a read-only filesystem.
const IGNORED: [&str; 15] = [
    "debug",
    "clone_fd",
    "nonempty",
    "max_idle_threads",
    "max_threads",
    "auto_unmount",
    "kernel_cache",
    "auto_cache",
    "entry_timeout",
    "attr_timeout",
    "negative_timeout",
    "ac_attr_timeout",
    "max_read",
    "splice_read",
    "umask",
];

/// Prints help or the version; all other command lines are translated by [`arguments`].
pub fn run(name: &str, args: &[OsString]) -> Outcome {
    let rows = rows(name);
    let given = parse(&[rows], Style::Getopt, args)?;
    if given.has("-V") {
        report::line(format_args!("{name} (packfs {})", env!("CARGO_PKG_VERSION")))?;
        return Ok(ExitCode::SUCCESS);
    }
    if given.has("-h") {
        report::line(format_args!(
            "Usage: {name} [options] IMAGE MOUNTPOINT\n\n{}  \
             -o offset=N,subdir=PATH,uid=N,gid=N,timeout=SECONDS,allow_other,ro,...",
            usage::table(&[rows])
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    translated(name, args)?;
    Err(Error::failed("cannot mount"))
}

fn rows(name: &str) -> &'static [Row] {
    if name == "mount.erofs" { MOUNT_ROWS } else { ROWS }
}

/// Command line of `packfs mount`; `None` for help, and for options that [`run`] refuses.
pub fn arguments(name: &str, args: &[OsString]) -> Option<Vec<OsString>> {
    translated(name, args).ok().flatten()
}

fn translated(name: &str, args: &[OsString]) -> Result<Option<Vec<OsString>>> {
    let given = parse(&[rows(name)], Style::Getopt, args)?;
    if given.has("-h") || given.has("-V") {
        return Ok(None);
    }
    if given.has("-u") {
        let [dir] = &given.operands[..] else { return Err(Error::usage("-u needs a mount point")) };
        return Ok(Some(["packfs".into(), "umount".into(), dir.clone()].into()));
    }
    let [image, dir] = &given.operands[..] else {
        return Err(Error::usage(format!("Usage: {name} [options] IMAGE MOUNTPOINT")));
    };
    let is_kernel = name == "mount.erofs" && given.last("-t").is_none_or(|kind| kind == "erofs");
    let mut result: Vec<OsString> = vec!["packfs".into(), "mount".into(), "--outer".into()];
    if !is_kernel {
        result.push("--fuse".into());
        // As libfuse names mounts, unless set by `-o`.
        for key in ["subtype", "fsname"] {
            result.extend(["-o".into(), format!("{key}={name}").into()]);
        }
    }
    if name == "mount.erofs" && given.last("-t") == Some(OsStr::new("erofs.nbd")) {
        return Err(Error::usage("network block devices are not supported")
            .hint("packfs mount --fuse serves a local image"));
    }
    if given.has("-f") || given.has("-d") {
        result.push("--foreground".into());
    }
    for (option, long) in [("--offset", "--offset"), ("--device", "--device")] {
        result.extend(given.all(option).flat_map(|value| [OsString::from(long), value.to_owned()]));
    }
    options(&given, &mut result)?;
    result.extend(["--".into(), image.clone(), dir.clone()]);
    Ok(Some(result))
}

fn options(given: &Given, result: &mut Vec<OsString>) -> Result<()> {
    for list in given.all("-o") {
        for word in list.as_bytes().split(|&byte| byte == b',').filter(|word| !word.is_empty()) {
            let text = String::from_utf8_lossy(word);
            let (key, value) = text.split_once('=').unwrap_or((&text, ""));
            let word = match key {
                key if IGNORED.contains(&key) => continue,
                "oci" | "oci.layer" | "oci.platform" | "oci.blob" => {
                    return Err(Error::usage("remote layers are not supported")
                        .hint("packfs mount oci://REGISTRY/NAME:TAG DIR mounts an OCI image"));
                }
                // Root can always access its mounts.
                "allow_root" if packfs::mount::is_root() => continue,
                "allow_root" => {
                    return Err(Error::usage("-o allow_root is not supported")
                        .hint("-o allow_other opens the mount to all users, root among them"));
                }
                "timeout" => format!("idle-timeout={value}s"),
                "notify_pipe" => {
                    result.extend(["--notify".into(), value.into()]);
                    continue;
                }
                _ => text.into_owned(),
            };
            result.extend(["-o".into(), word.into()]);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, args: &[&str]) -> Option<String> {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        let words = arguments(name, &args)?;
        Some(words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn command_lines_become_those_of_mount() {
        assert_eq!(
            of("squashfuse_ll", &["-f", "-o", "uid=5,gid=6,offset=4096", "i", "d"]).unwrap(),
            "packfs mount --outer --fuse -o subtype=squashfuse_ll -o fsname=squashfuse_ll --foreground \
             -o uid=5 -o gid=6 -o offset=4096 -- i d"
        );
        assert_eq!(
            of("squashfuse", &["i", "d", "-o", "ro,nodev,fsname=x,timeout=3"]).unwrap(),
            "packfs mount --outer --fuse -o subtype=squashfuse -o fsname=squashfuse -o ro -o nodev \
             -o fsname=x -o idle-timeout=3s -- i d"
        );
        assert_eq!(
            of("squashfuse_ll", &["-o", "notify_pipe=/run/p", "i", "d"]).unwrap(),
            "packfs mount --outer --fuse -o subtype=squashfuse_ll -o fsname=squashfuse_ll \
             --notify /run/p -- i d"
        );
        assert_eq!(
            of("erofsfuse", &["--offset=9", "i", "d"]).unwrap(),
            "packfs mount --outer --fuse -o subtype=erofsfuse -o fsname=erofsfuse --offset 9 -- i d"
        );
        assert_eq!(of("mount.erofs", &["-u", "d"]).unwrap(), "packfs umount d");
        assert_eq!(of("mount.erofs", &["i", "d", "-t", "erofs"]).unwrap(), "packfs mount --outer -- i d");
        assert_eq!(of("squashfuse", &["--help"]), None);
        assert_eq!(of("squashfuse", &["i"]), None);
    }
}
