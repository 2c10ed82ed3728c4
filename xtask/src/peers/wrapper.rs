//! Running a program of another system with its own loader and libraries.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{PACKAGES, Peer, root};
use crate::failure::{Failure, Result};
use crate::{shell, workspace};

/// Returns the command line that runs `program`.
pub fn command(program: &str) -> Result<Vec<OsString>> {
    let root = root();
    let libraries = find(&root.join("usr/lib"), |path| path.join("libc.so.6").exists())
        .ok_or_else(|| Failure::new(format!("no libc.so.6 below {}/usr/lib", root.display())))?;
    let places = [root.join("usr/lib64"), root.join("usr/lib"), libraries.clone()];
    let loader = places
        .iter()
        .find_map(|dir| find(dir, is_loader))
        .ok_or_else(|| Failure::new(format!("no dynamic loader below {}/usr/lib", root.display())))?;
    let program = place(program);
    Ok(vec![loader.into(), "--library-path".into(), libraries.into(), program.into()])
}

/// Returns true if a peer is present.
pub fn is_unpacked(peer: &Peer) -> bool {
    place(&peer.program).exists()
}

/// Returns the path of a program, which some packages have in `sbin`.
fn place(program: &str) -> PathBuf {
    let [bin, sbin] = ["usr/bin", "usr/sbin"].map(|dir| root().join(dir).join(program));
    if sbin.exists() { sbin } else { bin }
}

pub fn write(peer: &Peer) -> Result<()> {
    let path = peer.wrapper();
    workspace::make_dir(&workspace::peers().join("bin"))?;
    let words: Vec<_> = command(&peer.program)?.iter().map(|word| shell::quoted(word)).collect();
    let text = format!(
        "#!/bin/sh\n# Made by `cargo xtask peers`: {} {} with the loader and libraries it was built for.\nexec {} \"$@\"\n",
        peer.package,
        peer.version,
        words.join(" ")
    );
    std::fs::write(&path, text).map_err(|error| Failure::io("write", &path, error))?;
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755))
        .map_err(|error| Failure::io("make runnable", &path, error))
}

/// Runs a peer once and checks that it prints the version of its package, or its name if it states
/// no version.
///
/// The exit status is ignored, because some programs print their version and fail.
pub fn check(peer: &Peer) -> Result<()> {
    let package = PACKAGES.iter().find(|package| package.name == peer.package);
    let option = package.and_then(|package| package.version_option);
    let wrapper = peer.wrapper();
    let output =
        Command::new(&wrapper).args(option).output().map_err(|error| Failure::io("run", &wrapper, error))?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let wanted = option.map_or(&*peer.program, |_| peer.upstream_version());
    if said.contains(wanted) {
        return Ok(());
    }
    Err(Failure::new(format!("{} does not say {wanted}; it said:\n{said}", wrapper.display())))
}

fn is_loader(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    (name.starts_with("ld-linux") || name.starts_with("ld64.so")) && name.contains(".so.")
}

/// Returns the first entry of a folder, by name, that `fits`.
fn find(dir: &Path, fits: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(dir).ok()?.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.into_iter().find(|path| fits(path))
}
