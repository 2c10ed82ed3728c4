//! Check that the program `packfs` links no crate of the lab.

use std::path::Path;

use crate::failure::Result;
use crate::{metadata, shell};

pub fn check(root: &Path) -> Result<Vec<String>> {
    let mut command = metadata::cargo();
    command.args(["tree", "--package", "packfs-cli"]);
    let text = shell::capture(command.args(["--edges", "normal", "--prefix", "none"]).current_dir(root))?;
    let of_lab = of_lab(&text, root).map(|name| format!("packfs links {name}, which is of the lab"));
    Ok(of_lab.collect())
}

/// Returns packages in `lab/` from lines such as `packfs-lab v0.1.0 (/work/packfs/lab/engine)`.
fn of_lab<'a>(tree: &'a str, root: &Path) -> impl Iterator<Item = &'a str> {
    let folder = format!("({}/", root.join("lab").display());
    tree.lines().filter(move |line| line.contains(&folder)).filter_map(|line| line.split(' ').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_the_lab_are_known_by_their_folder() {
        let tree =
            "packfs-cli v0.1.0 (/w/crates/cli)\nserde v1.0.0\npackfs-host v0.1.0 (/w/lab/host)\nlab v1.0.0";
        assert_eq!(of_lab(tree, Path::new("/w")).collect::<Vec<_>>(), ["packfs-host"]);
    }
}
