//! `cargo xtask capi`: libpackfs, its header, and its file for pkg-config, without cargo-c.

use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};
use crate::metadata::Workspace;
use crate::{metadata, shell, workspace};

/// Build and install the C library, its header, and its pkg-config file
///
/// Builds libpackfs with optimization, and installs lib/libpackfs.so, lib/libpackfs.a,
/// include/packfs.h, and lib/pkgconfig/packfs.pc below the prefix. `cargo cinstall --release` of
/// cargo-c, in crates/capi, does the same.
#[derive(clap::Args)]
pub struct Options {
    /// Absolute path that programs find the library below
    #[arg(long, value_name = "DIR", default_value = "/usr/local")]
    prefix: String,
    /// Folder that stands for the root while files are installed, as for packages
    #[arg(long, value_name = "DIR", default_value = "")]
    destdir: String,
}

/// Libraries of the system that the static library needs.
const PRIVATE_LIBS: &str = "-lgcc_s -lpthread -lm -ldl -lc";

pub fn run(Options { prefix, destdir }: Options) -> Result<()> {
    if !Path::new(&prefix).is_absolute() {
        return Err(Failure::usage(format!("--prefix {prefix}: an absolute path is allowed")));
    }
    let workspace = Workspace::read()?;
    let package = workspace.members().find(|package| package.name == "packfs-capi");
    let version = &package.ok_or_else(|| Failure::new("the workspace has no package packfs-capi"))?.version;

    let mut cargo = metadata::cargo();
    cargo.args(["build", "--release", "--locked", "--package", "packfs-capi"]);
    shell::run(cargo.current_dir(workspace::root()))?;
    let built = workspace.target_directory.join("release");
    let below = PathBuf::from(format!("{destdir}{prefix}"));
    let (lib, include) = (below.join("lib"), below.join("include"));
    workspace::make_dir(&lib.join("pkgconfig"))?;
    workspace::make_dir(&include)?;

    let shared = format!("libpackfs.so.{version}");
    install(&built.join("libpackfs_capi.so"), &lib.join(&shared))?;
    install(&built.join("libpackfs_capi.a"), &lib.join("libpackfs.a"))?;
    install(&workspace::root().join("crates/capi/include/packfs.h"), &include.join("packfs.h"))?;
    link(&shared, &lib.join(format!("libpackfs.so.{}", compatible(version))))?;
    link(&shared, &lib.join("libpackfs.so"))?;
    let file = lib.join("pkgconfig/packfs.pc");
    std::fs::write(&file, pkg_config(&prefix, version))
        .map_err(|error| Failure::io("write", &file, error))?;
    println!("{}", below.display());
    Ok(())
}

/// Returns the part of the version that programs depend on, as cargo-c has it.
fn compatible(version: &str) -> String {
    let mut parts = version.split('.');
    match (parts.next(), parts.next()) {
        (Some("0"), Some(minor)) => format!("0.{minor}"),
        (major, _) => major.unwrap_or_default().to_owned(),
    }
}

fn pkg_config(prefix: &str, version: &str) -> String {
    format!(
        "prefix={prefix}\nlibdir=${{prefix}}/lib\nincludedir=${{prefix}}/include\n\n\
         Name: packfs\nDescription: Compressed read-only filesystem images: open, list, read, check\n\
         Version: {version}\nLibs: -L${{libdir}} -lpackfs\nLibs.private: {PRIVATE_LIBS}\n\
         Cflags: -I${{includedir}}\n"
    )
}

/// Replaces a file by a new one, because the old one may be in use.
fn install(from: &Path, to: &Path) -> Result<()> {
    let _ = std::fs::remove_file(to);
    std::fs::copy(from, to).map(|_| ()).map_err(|error| Failure::io("install", to, error))
}

fn link(target: &str, at: &Path) -> Result<()> {
    let _ = std::fs::remove_file(at);
    std::os::unix::fs::symlink(target, at).map_err(|error| Failure::io("install", at, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_depend_on_the_part_of_the_version_that_cargo_c_names() {
        assert_eq!([compatible("0.1.7"), compatible("1.2.3")], ["0.1", "1"]);
    }

    #[test]
    fn pkg_config_finds_what_is_installed() {
        let text = pkg_config("/usr", "0.1.0");
        assert!(text.starts_with("prefix=/usr\nlibdir=${prefix}/lib\n"), "{text}");
        assert!(text.ends_with("\nCflags: -I${includedir}\n"), "{text}");
    }
}
