//! Facts of the build that `packfs --version` prints.

use std::path::Path;
use std::process::Command;

/// The commit, in an archive made by `git archive`.
const ARCHIVED: &str = "$Format:%H$";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = output(Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into())).arg("-V"));
    let features = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut features: Vec<String> =
        features.filter_map(|name| Some(name.strip_prefix("CARGO_FEATURE_")?.to_lowercase())).collect();
    features.sort();
    set("PACKFS_RUSTC", rustc);
    set("PACKFS_TARGET", std::env::var("TARGET").ok());
    set("PACKFS_FEATURES", Some(features.join(",")));
    set("PACKFS_CRATES", locked(&["libdeflate-sys", "zlib-rs"]));
    set("PACKFS_COMMIT", commit());
}

fn set(name: &str, value: Option<String>) {
    if let Some(value) = value {
        println!("cargo::rustc-env={name}={value}");
    }
}

fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

/// Returns the versions of crates, as the lock file next to this package or above has them.
fn locked(names: &[&str]) -> Option<String> {
    let folder = std::env::current_dir().ok()?;
    let path = folder.ancestors().map(|dir| dir.join("Cargo.lock")).find(|path| path.exists())?;
    println!("cargo::rerun-if-changed={}", path.display());
    let lock = std::fs::read_to_string(path).ok()?;
    let version = |name: &&str| {
        let rest = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?.1;
        Some(format!("{name} {}", rest.split_once('"')?.0))
    };
    Some(names.iter().filter_map(version).collect::<Vec<_>>().join(","))
}

/// Returns the commit that the packager names, else that of the archive, the package of crates.io,
/// or the checkout.
fn commit() -> Option<String> {
    println!("cargo::rerun-if-env-changed=PACKFS_COMMIT");
    if let Ok(commit) = std::env::var("PACKFS_COMMIT") {
        return Some(commit).filter(|commit| !commit.is_empty());
    }
    if !ARCHIVED.starts_with('$') {
        return Some(ARCHIVED.to_owned());
    }
    if let Ok(info) = std::fs::read_to_string(".cargo_vcs_info.json") {
        return Some(info.split_once("\"sha1\": \"")?.1.split_once('"')?.0.to_owned());
    }
    let git = |words: &[&str]| output(Command::new("git").arg("rev-parse").args(words));
    // A checkout that only contains this source, such as that of a distribution, has other commits.
    let answer = git(&["--show-prefix", "HEAD"])?;
    let commit = answer.strip_prefix("crates/cli/\n")?;
    // One changes with the branch, the other with each commit.
    for path in ["HEAD", "logs/HEAD"].into_iter().filter_map(|file| git(&["--git-path", file])) {
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    Some(commit.to_owned())
}
