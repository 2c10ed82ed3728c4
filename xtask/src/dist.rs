//! `cargo xtask dist`: archives of static programs for releases.

mod archive;
mod build;
mod licenses;
mod sbom;
mod sign;
mod smoke;
mod source;
mod tools;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, Result};
use crate::table::Table;
use crate::{shell, workspace};
use build::Builder;
pub use build::fetch_library;

/// Build static programs in archives, with checksums and a bill of materials
///
/// Writes target/dist/packfs-VERSION-TARGET.tar.zst and .tar.gz with the program, completions,
/// manual pages, and licenses below bin and share, packfs-VERSION-TARGET.cdx.json with all linked
/// crates (CycloneDX), and SHA256SUMS. Programs are linked statically. Equal sources and tools give
/// equal archives: times are those of the last commit, or SOURCE_DATE_EPOCH.
#[derive(clap::Args)]
pub struct Options {
    /// Rust targets
    #[arg(value_name = "TARGET", default_values_t = TARGETS.map(str::to_owned))]
    targets: Vec<String>,
    /// Fetch what is missing: the standard library of TARGET by rustup, or its source for
    /// --build-std, and cargo-zigbuild with zig from PyPI into target/tools/zig
    #[arg(long)]
    fetch: bool,
    /// Build the standard library from the component rust-src, for toolchains that have none for
    /// TARGET
    #[arg(long)]
    build_std: bool,
    /// Compile C and link by `cargo zigbuild` (default if it is installed and TARGET is musl)
    #[arg(long)]
    zig: bool,
    /// Use the C compiler that the crate cc finds, such as musl-gcc
    #[arg(long, conflicts_with = "zig")]
    no_zig: bool,
    /// Write target/dist/packfs-VERSION-vendored.tar.gz instead: the last commit with all crates
    /// that it depends on, for builds without a network
    #[arg(long, exclusive = true)]
    source: bool,
    /// Sign the files in target/dist instead: write install.sh with the public key KEY.pub, and
    /// SHA256SUMS with SHA256SUMS.minisig
    #[arg(long, value_name = "KEY", conflicts_with_all = ["targets", "fetch", "build_std", "zig", "no_zig"])]
    sign: Option<PathBuf>,
    /// With --sign: the first line of FILE is the password of KEY
    #[arg(long, value_name = "FILE", requires = "sign")]
    password_file: Option<PathBuf>,
    /// Write only the files of an archive to DIR, with a program for this machine that is linked as
    /// usual: what packages of distributions contain below /usr
    #[arg(long, exclusive = true, value_name = "DIR")]
    tree: Option<PathBuf>,
    /// Try the archives in target/dist instead, by emulators of QEMU for other machines
    #[arg(long, exclusive = true)]
    smoke: bool,
}

const TARGETS: [&str; 5] = [
    "x86_64-unknown-linux-musl",
    "aarch64-unknown-linux-musl",
    "armv7-unknown-linux-musleabihf",
    "riscv64gc-unknown-linux-musl",
    "i686-unknown-linux-musl",
];

/// Forms of an archive; the second one is for machines without zstd.
const FORMS: [&str; 2] = ["tar.zst", "tar.gz"];

/// Name of an archive for the script `integration/install` and for cargo-binstall.
fn archive_name(version: &str, target: &str) -> String {
    format!("packfs-{version}-{target}")
}

/// Files of the checkout in each archive.
const FILES: [&str; 5] = ["README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// Shells with completions, and their files.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/packfs"),
    ("zsh", "share/zsh/site-functions/_packfs"),
    ("fish", "share/fish/vendor_completions.d/packfs.fish"),
];

/// Folder of [`FILES`], licenses, and the bill of materials.
const DOCUMENTS: &str = "share/doc/packfs";

/// Builds the static program of a target; fetches what is missing.
pub fn program(target: &str) -> Result<PathBuf> {
    Builder { build_std: false, zig: Some(true), fetch: true }.build(target)
}

/// Returns a `PATH` on which zig is, after a build by it.
pub fn zig_path() -> Result<std::ffi::OsString> {
    tools::zig_path().ok_or_else(|| Failure::new("zig is missing"))
}

pub fn run(options: Options) -> Result<()> {
    if options.source {
        return source();
    }
    if let Some(tree) = options.tree {
        let program = program_of_machine()?;
        return stage(&tree, &program, &program);
    }
    if options.smoke {
        return smoke::run(&folder()?);
    }
    if let Some(key) = &options.sign {
        return sign::run(&folder()?, key, options.password_file.as_deref());
    }
    let Options { targets, fetch, build_std, .. } = options;
    let zig = (options.zig || options.no_zig).then_some(options.zig);
    let (folder, time) = (folder()?, archive::time()?);
    let builder = Builder { build_std, zig, fetch };
    let programs = targets.iter().map(|target| builder.build(target)).collect::<Result<Vec<_>>>()?;
    let speaker = speaker(&targets, &programs)?;
    let mut table = Table::new(&["archive", "program", FORMS[0], FORMS[1]], 1);
    for (target, program) in targets.iter().zip(&programs) {
        let sbom = sbom::Sbom::read(target)?;
        let name = archive_name(sbom.version(), target);
        let tree = folder.join(&name);
        workspace::remove_dir(&tree)?;
        stage(&tree, program, &speaker)?;
        let bill = folder.join(format!("{name}.cdx.json"));
        write(&bill, sbom.text(target, time).as_bytes())?;
        let documents = tree.join(DOCUMENTS);
        copy(&bill, &documents.join("sbom.cdx.json"))?;
        licenses::write(&sbom, &documents.join("licenses"))?;
        let packed = archive::pack(&folder, &name, &FORMS, time)?;
        workspace::remove_dir(&tree)?;
        let sizes = packed.iter().map(|path| size(path)).collect::<Result<Vec<_>>>()?;
        table.row([vec![name, size(program)?], sizes].concat());
    }
    archive::sums(&folder)?;
    print!("{}", table.text());
    Ok(())
}

fn source() -> Result<()> {
    let (folder, time) = (folder()?, archive::time()?);
    let version = sbom::Sbom::read(TARGETS[0])?.version().to_owned();
    let packed = source::pack(&folder, &version, time)?;
    archive::sums(&folder)?;
    println!("{}  {}", packed.display(), size(&packed)?);
    Ok(())
}

fn folder() -> Result<PathBuf> {
    let folder = workspace::target().join("dist");
    workspace::make_dir(&folder)?;
    Ok(folder)
}

fn speaker(targets: &[String], programs: &[PathBuf]) -> Result<PathBuf> {
    let here = |target: &String| target.starts_with(std::env::consts::ARCH);
    if let Some((_, program)) = targets.iter().zip(programs).find(|(target, _)| here(target)) {
        return Ok(program.clone());
    }
    program_of_machine()
}

pub fn program_of_machine() -> Result<PathBuf> {
    let mut cargo = crate::metadata::cargo();
    cargo.args(["build", "--release", "--locked", "-p", "packfs-cli", "--bin", "packfs"]);
    cargo.arg("--target-dir").arg(workspace::target());
    shell::run(cargo.current_dir(workspace::root()))?;
    Ok(workspace::target().join("release/packfs"))
}

/// Writes the files of an archive to `tree`, below `bin` and `share` as below `/usr`, so that every
/// package is a copy of them.
fn stage(tree: &Path, program: &Path, speaker: &Path) -> Result<()> {
    let (man, documents) = (tree.join("share/man/man1"), tree.join(DOCUMENTS));
    for folder in [&tree.join("bin"), &man, &documents] {
        workspace::make_dir(folder)?;
    }
    copy(program, &tree.join("bin/packfs"))?;
    for (shell_name, file) in SHELLS {
        let text = shell::capture(Command::new(speaker).args(["completions", shell_name]))?;
        let file = tree.join(file);
        file.parent().map_or(Ok(()), workspace::make_dir)?;
        write(&file, text.as_bytes())?;
    }
    shell::run_quietly(Command::new(speaker).arg("man").arg(man))?;
    FILES.iter().try_for_each(|file| copy(&workspace::root().join(file), &documents.join(file)))
}

fn size(path: &Path) -> Result<String> {
    let len = std::fs::metadata(path).map_err(|error| Failure::io("read", path, error))?.len();
    Ok(format!("{:.1} MiB", len as f64 / f64::from(1 << 20)))
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(path, bytes).map_err(|error| Failure::io("write", path, error))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::copy(from, to).map(|_| ()).map_err(|error| Failure::io("copy", from, error))
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| Failure::io("read", path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_and_binstall_find_archives_by_their_name() {
        let script = read(&workspace::root().join(sign::SCRIPT)).unwrap();
        let name = archive_name("$version", "$target");
        assert!(script.contains(&format!("archive={name}.{}", FORMS[1])), "{name}");
        for target in TARGETS {
            assert!(script.contains(&format!(" target={target}")), "{target}");
        }
        let package: toml::Table =
            toml::from_str(&read(&workspace::root().join("crates/cli/Cargo.toml")).unwrap()).unwrap();
        let binstall = &package["package"]["metadata"]["binstall"];
        let url = binstall["pkg-url"].as_str().unwrap();
        let name = archive_name("{ version }", "{ target }");
        assert!(url.ends_with(&format!("/{name}.{}", FORMS[0])), "{url}");
        let program = format!("{name}/bin/{{ bin }}");
        assert_eq!(binstall["bin-dir"].as_str(), Some(&*program));
    }
}
