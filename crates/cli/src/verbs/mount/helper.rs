//! The program as `mount(8)` calls it for file systems of type `packfs`:
//! `mount.packfs IMAGE DIR [-fnsv] [-o OPTIONS]`.

use std::ffi::OsString;
use std::path::Path;

/// The name under which `mount(8)` looks for it, in `/sbin`.
const NAME: &str = "mount.packfs";

/// The command line as it is meant: that of `packfs mount` if the program was called as a helper
/// or under the name of another tool that mounts, else as it is.
pub fn arguments(args: Vec<OsString>) -> Vec<OsString> {
    if let Some(args) = packfs_names::mount_arguments(&args) {
        return args;
    }
    let called = args.first().map(|name| Path::new(name).file_name() == Some(NAME.as_ref()));
    if called == Some(true) { translated(args) } else { args }
}

fn translated(args: Vec<OsString>) -> Vec<OsString> {
    let mut options: Vec<OsString> = Vec::new();
    let mut places: Vec<OsString> = Vec::new();
    let mut fake = false;
    let mut args = args.into_iter().skip(1);
    while let Some(arg) = args.next() {
        match arg.to_str() {
            Some("-o") => options.extend(["-o".into(), args.next().unwrap_or_default()]),
            // The type, and the namespace that mount(8) has entered already.
            Some("-t" | "-N") => drop(args.next()),
            Some("--help" | "-h") => options.push("--help".into()),
            Some(flags) if flags.len() > 1 && flags.starts_with('-') && places.len() != 1 => {
                // Sloppy, not in mtab, and talkative are nothing here; fake is not to mount.
                fake |= flags.contains('f');
                let unknown = flags[1..].chars().any(|flag| !"fnsvrw".contains(flag));
                if unknown {
                    options.push(arg);
                }
            }
            _ => places.push(arg),
        }
    }
    let mut result: Vec<OsString> = vec!["packfs".into(), "mount".into()];
    if fake {
        return vec!["packfs".into(), "mount".into(), "--list".into()];
    }
    result.extend(options);
    result.push("--".into());
    result.extend(places);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(args: &[&str]) -> Vec<String> {
        let args = args.iter().map(OsString::from).collect();
        arguments(args).into_iter().map(|arg| arg.into_string().unwrap()).collect()
    }

    #[test]
    fn arguments_of_mount_become_a_command_line() {
        assert_eq!(
            translated(&[
                "/sbin/mount.packfs",
                "/a b.sqfs",
                "/mnt",
                "-sn",
                "-o",
                "rw,subdir=usr",
                "-t",
                "packfs"
            ]),
            ["packfs", "mount", "-o", "rw,subdir=usr", "--", "/a b.sqfs", "/mnt"]
        );
    }

    #[test]
    fn other_names_change_nothing() {
        assert_eq!(translated(&["packfs", "ls", "-o"]), ["packfs", "ls", "-o"]);
        assert_eq!(translated(&[]), [""; 0]);
    }
}
