//! Archives whose bytes depend on their contents alone, and their checksums.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, Result};
use crate::{shell, workspace};

/// Returns the time of all files: SOURCE_DATE_EPOCH, or that of the last commit.
pub fn time() -> Result<u64> {
    let text = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => shell::capture(
            Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(workspace::root()),
        )?,
    };
    text.trim().parse().map_err(|_| Failure::new(format!("SOURCE_DATE_EPOCH {text:?} is no number")))
}

/// Packs the folder `name` of `folder` in some of `FORMS`, and returns the archives.
pub fn pack(folder: &Path, name: &str, forms: &[&str], time: u64) -> Result<Vec<PathBuf>> {
    let tar = folder.join(format!("{name}.tar"));
    let mut pack = Command::new("tar");
    pack.args(["--sort=name", "--format=ustar", "--owner=0", "--group=0", "--numeric-owner"]);
    pack.args(["--mode=u+w,go=rX", &format!("--mtime=@{time}")]);
    shell::run_quietly(pack.arg("-cf").arg(&tar).arg(name).current_dir(folder))?;
    let compress = |form: &&str| {
        let (program, options) = match *form {
            "tar.zst" => ("zstd", ["-19", "-q", "-f"]),
            _ => ("gzip", ["-9", "-n", "-f"]),
        };
        shell::run_quietly(Command::new(program).args(options).arg("-k").arg(&tar))?;
        Ok(folder.join(format!("{name}.{form}")))
    };
    let packed = forms.iter().map(compress).collect();
    std::fs::remove_file(&tar).map_err(|error| Failure::io("remove", &tar, error))?;
    packed
}

/// Writes SHA256SUMS of all archives, documents, and scripts in a folder.
pub fn sums(folder: &Path) -> Result<()> {
    let entries = std::fs::read_dir(folder).map_err(|error| Failure::io("list", folder, error))?;
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    let ends = [super::FORMS[0], super::FORMS[1], "json", "sh"];
    names.retain(|name| ends.iter().any(|end| name.to_string_lossy().ends_with(&format!(".{end}"))));
    names.sort();
    let text = shell::capture(Command::new("sha256sum").arg("--").args(names).current_dir(folder))?;
    super::write(&folder.join("SHA256SUMS"), text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn equal_contents_give_equal_archives() {
        let top = std::env::temp_dir().join(format!("packfs-dist-{}", std::process::id()));
        let pack_at = |place: &str, mode: u32| {
            let folder = top.join(place);
            workspace::make_dir(&folder.join("a")).unwrap();
            for name in ["b", "c"] {
                let file = folder.join("a").join(name);
                std::fs::write(&file, name).unwrap();
                std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
            }
            pack(&folder, "a", &super::super::FORMS, 5).unwrap();
            std::fs::remove_dir_all(folder.join("a")).unwrap();
            sums(&folder).unwrap();
            std::fs::read_to_string(folder.join("SHA256SUMS")).unwrap()
        };
        let (first, second) = (pack_at("1", 0o600), pack_at("2", 0o644));
        workspace::remove_dir(&top).unwrap();
        assert_eq!(first, second);
        let names = first.lines().map(|line| &line[64..]).collect::<Vec<_>>();
        assert_eq!(names, ["  a.tar.gz", "  a.tar.zst"]);
    }
}
