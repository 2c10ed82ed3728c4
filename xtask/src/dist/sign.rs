//! The signature of a release, and the script that checks it.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{FORMS, archive};
use crate::failure::{Failure, Result};
use crate::{shell, workspace};

pub const SCRIPT: &str = "integration/install/install.sh";

pub fn run(folder: &Path, key: &Path, password_file: Option<&Path>) -> Result<()> {
    let public = PathBuf::from(format!("{}.pub", key.display()));
    write_script(folder, &super::read(&public)?)?;
    archive::sums(folder)?;
    let sums = folder.join("SHA256SUMS");
    let packfs = program(folder)?;
    let mut sign = Command::new(&packfs);
    sign.arg("sign").arg(&sums).arg("--secret-key").arg(key);
    if let Some(file) = password_file {
        sign.arg("--password-file").arg(file);
    }
    shell::run(&mut sign)?;
    shell::run(Command::new(&packfs).arg("verify").arg(&sums).arg("--public-key").arg(&public))
}

/// Writes the script with the public key and the address of the repository, if there is one.
fn write_script(folder: &Path, public: &str) -> Result<()> {
    let key = public.lines().nth(1).ok_or_else(|| Failure::new("the public key has no second line"))?;
    let manifest: toml::Table = toml::from_str(&super::read(&workspace::root().join("Cargo.toml"))?)
        .map_err(|error| Failure::new(format!("Cargo.toml: {error}")))?;
    let repository = manifest["workspace"]["package"].get("repository").and_then(toml::Value::as_str);
    let mut script = super::read(&workspace::root().join(SCRIPT))?;
    for (name, value) in [("key", key.trim()), ("repository", repository.unwrap_or_default())] {
        let (from, to) = (format!("\n{name}=\n"), format!("\n{name}={value}\n"));
        if !script.contains(&from) {
            return Err(Failure::new(format!("{SCRIPT} has no line {name:?}")));
        }
        script = script.replace(&from, &to);
    }
    super::write(&folder.join("install.sh"), script.as_bytes())
}

/// Returns the program of this machine, from its archive if there is one.
fn program(folder: &Path) -> Result<PathBuf> {
    let start = format!("-{}-unknown-linux-musl.{}", std::env::consts::ARCH, FORMS[1]);
    let files = workspace::files_below(folder)?;
    let Some(archive) = files.iter().find(|file| file.to_string_lossy().ends_with(&start)) else {
        return super::program_of_machine();
    };
    let tools = workspace::target().join("tools/dist");
    workspace::make_dir(&tools)?;
    let mut tar = Command::new("tar");
    tar.args(["--strip-components=2", "--wildcards", "-xf"]).arg(archive).arg("-C").arg(&tools);
    shell::run_quietly(tar.arg("*/bin/packfs"))?;
    Ok(tools.join("packfs"))
}
