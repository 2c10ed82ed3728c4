//! Whether two programs wrote as much: a time means nothing if something was left out.
//!
//! Names and bytes are counted here, not compared: that outputs are right is for the tests to show. Counting is left to
//! other processes where it takes memory, for the sake of what `measure` says about this one.

use std::path::Path;
use std::process::Command;

use super::case::{Case, Verb};
use crate::corpus::Counts;
use crate::failure::{Failure, Result};
use crate::rivals::Format;
use crate::{shell, workspace};

/// Checks the outputs of a case: two images, two trees or two tars.
pub fn check_same(case: &Case, ours: &Path, theirs: &Path) -> Result<()> {
    let count = |path: &Path| match case.verb {
        Verb::Pack => Ok(Counts { entries: names_in_image(case.format, path)?, bytes: 0 }),
        Verb::Unpack => Counts::of(path),
        Verb::Tar => Ok(Counts { entries: names_in_tar(path)?, bytes: 0 }),
    };
    let (found, wanted) = (count(ours)?, count(theirs)?);
    if found == wanted {
        return Ok(());
    }
    Err(Failure::new(format!("packfs wrote {found:?}, its rival {wanted:?}")))
}

fn names_in_image(format: Format, image: &Path) -> Result<u64> {
    let (program, list) = match format {
        Format::Squashfs => ("unsquashfs", r#""$1" -quiet -l "$2" | wc -l"#),
        Format::Erofs => ("dump.erofs", r#""$1" -S "$2" | sed -n 's/^Filesystem total file count: *//p'"#),
    };
    let program = workspace::peers().join("bin").join(program);
    count_lines(Command::new("sh").args(["-c", list, "sh"]).arg(program).arg(image))
}

/// Some name the top of the tree in a tar, others do not.
fn names_in_tar(tar: &Path) -> Result<u64> {
    let list = r#"tar --list --file "$1" | grep --count --invert-match --line-regexp '\./*' || true"#;
    count_lines(Command::new("sh").args(["-c", list, "sh"]).arg(tar))
}

fn count_lines(command: &mut Command) -> Result<u64> {
    let said = shell::capture(command)?;
    said.trim().parse().map_err(|_| Failure::new(format!("{}: said {said:?}", shell::spelled(command))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::case::{Filter, select};

    #[test]
    fn counts_names_in_a_tar_but_not_its_top() {
        let dir = std::env::temp_dir().join(format!("xtask-content-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("tree")).unwrap();
        std::fs::write(dir.join("tree/a"), "a").unwrap();
        std::fs::write(dir.join("tree/b"), "b").unwrap();
        let tar = |name: &str, what: &[&str]| {
            let path = dir.join(name);
            let mut command = Command::new("tar");
            command
                .arg("--create")
                .arg("--file")
                .arg(&path)
                .arg("--directory")
                .arg(dir.join("tree"))
                .args(what);
            shell::run_quietly(&mut command).unwrap();
            path
        };
        let (with_top, without, less) = (tar("1", &["."]), tar("2", &["a", "b"]), tar("3", &["a"]));
        let cases = select(&["tar".to_owned()], &Filter::default()).unwrap();
        let same = check_same(&cases[0], &with_top, &without);
        let differs = check_same(&cases[0], &less, &without);
        std::fs::remove_dir_all(&dir).unwrap();
        same.unwrap();
        assert!(differs.is_err());
    }
}
