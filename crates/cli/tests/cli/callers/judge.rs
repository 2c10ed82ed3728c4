//! Judges of two runs, none of which is packfs where the tests run as root.

use super::bench::Bench;
use super::call::{But, Call, Judge};
use packfs::FileType;
use packfs_testkit::{Compare, Mount, Snapshot, is_root, skip, snapshot_dir};
use std::path::Path;
use std::process::Command;

/// Returns a fault with a reason, unless the condition holds.
pub fn require(holds: bool, reason: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(reason()) }
}

impl Bench {
    /// Compares the images of a line: `ours` and `theirs`.
    pub fn images(&self, call: &Call, line: &str) -> Result<(), String> {
        if !is_root() {
            skip("mounts and owners of unpacked files need root: packfs compares the images instead");
            return self.diff(call, line);
        }
        match call.judge() {
            Judge::Kernel(format) => {
                let offset = if line.contains("-offset 4096") { 4096 } else { 0 };
                let mount = |name| {
                    let image = self.path(name);
                    whole_sectors(&image);
                    Mount::at_offset(&image, format, offset)
                };
                let (ours, theirs) = (mount("ours")?, mount("theirs")?);
                compare(call.but, snapshot_dir(&ours.path()), snapshot_dir(&theirs.path()))
            }
            Judge::Tar => self.unpacked(call.but, |image, folder| {
                std::fs::create_dir(folder).unwrap();
                let mut tar = Command::new("tar");
                tar.args(["--xattrs", "--xattrs-include=*", "--numeric-owner", "-xpf"]);
                tar.arg(image).arg("-C").arg(folder);
                tar
            }),
            Judge::Cramfs => self.unpacked(call.but, |image, folder| {
                let mut check = Command::new("/sbin/fsck.cramfs");
                check.arg(format!("--extract={}", folder.display())).arg(image);
                check
            }),
        }
    }

    /// Compares what another program unpacks from the images of a line.
    fn unpacked(&self, but: &[But], unpack: impl Fn(&Path, &Path) -> Command) -> Result<(), String> {
        let mut trees = Vec::new();
        for name in ["ours", "theirs"] {
            let around = tempfile::tempdir().unwrap();
            let folder = around.path().join("tree");
            let output = unpack(&self.path(name), &folder).output().map_err(|error| error.to_string())?;
            let said = String::from_utf8_lossy(&output.stderr);
            require(output.status.success(), || format!("{name}: {said}"))?;
            trees.push(snapshot_dir(&folder));
        }
        let [ours, theirs] = <[Snapshot; 2]>::try_from(trees).unwrap();
        compare(but, ours, theirs)
    }

    /// Compares the folders that a line wrote.
    pub fn folders(&self, but: &[But]) -> Result<(), String> {
        let [ours, theirs] = ["ours", "theirs"].map(|name| self.path(name));
        match (ours.exists(), theirs.exists()) {
            (true, true) => compare(but, snapshot_dir(&ours), snapshot_dir(&theirs)),
            (a, b) => require(a == b, || format!("packfs wrote: {a}, the tool wrote: {b}")),
        }
    }

    fn diff(&self, call: &Call, line: &str) -> Result<(), String> {
        let offset = if line.contains("-offset 4096") { "4096" } else { "0" };
        let mut command = Command::new(env!("CARGO_BIN_EXE_packfs"));
        command.args(["diff", "--offset-a", offset, "--offset-b", offset, "ours", "theirs"]);
        command.args(call.but.contains(&But::Times).then_some("--no-times"));
        let output = command.current_dir(self.path("")).output().unwrap();
        require(output.status.success(), || {
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat()
        })
    }
}

/// Appends zeros to an image that was made without padding: loop devices have whole sectors.
fn whole_sectors(image: &Path) {
    let file = std::fs::OpenOptions::new().write(true).open(image).unwrap();
    let len = file.metadata().unwrap().len();
    file.set_len(len.next_multiple_of(4096)).unwrap();
}

/// Compares two trees but for what is left out.
pub fn compare(but: &[But], mut ours: Snapshot, mut theirs: Snapshot) -> Result<(), String> {
    for row in ours.0.values_mut().chain(theirs.0.values_mut()) {
        if but.contains(&But::Times) {
            (row.mtime.seconds, row.mtime.nanos) = (0, 0);
        }
        if but.contains(&But::SetIds) {
            row.mode &= 0o1777;
        }
        if but.contains(&But::SpecialModes) && !matches!(row.file_type, FileType::File | FileType::Directory)
        {
            row.mode = 0;
        }
    }
    let dir_links = !but.contains(&But::DirectoryLinks);
    let hard_links = !but.contains(&But::Links);
    let compare = Compare { hard_links, dir_links, root: !but.contains(&But::Root), ..Compare::ALL };
    let differences = ours.differences(&theirs, compare);
    require(differences.is_empty(), || differences.join("\n"))
}
