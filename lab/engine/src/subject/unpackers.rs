//! Programs that decode a whole image without a mount.

use std::path::{Path, PathBuf};

use super::Installed;
use super::table::{TABLE, Unpacks};
use super::template::{call, word};
use crate::process::{Invocation, quoted};
use crate::results::Missing;

/// Destination of unpacked contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unpack {
    /// To standard output, as a tar.
    Tar,
    /// Into a directory, which does not exist yet.
    Dir(PathBuf),
    /// All entries with their facts, to standard output.
    List,
}

/// Decodes whole images.
pub type Unpacker = Installed<&'static Unpacks>;

impl Unpacker {
    /// Returns true if it reads images of this format, as packfs names formats.
    pub fn reads(&self, format: &str) -> bool {
        self.kind.reads(format)
    }

    /// Returns the command, in `jobs` threads where it can be told; none if it does no such thing.
    pub fn command(&self, task: &Unpack, image: &Path, jobs: u32) -> Option<Invocation> {
        let values = [word("image", image), word("jobs", jobs.to_string())];
        let dir = match task {
            Unpack::Tar => return Some(call(&self.program, self.kind.tar.as_ref()?, &values)),
            Unpack::List => return Some(call(&self.program, self.kind.list.as_ref()?, &values)),
            Unpack::Dir(dir) => dir,
        };
        let template = self.kind.dir.as_ref()?;
        // Old programs extract no attributes, and refuse the option.
        let xattrs = template.contains("{xattrs}") && self.program.offers().has("xattrs");
        let xattrs = ("xattrs", xattrs.then(|| "--xattrs".into()).into_iter().collect());
        let [image, jobs] = values;
        let command = call(&self.program, template, &[image, jobs, word("dir", dir), xattrs]);
        Some(if self.kind.needs_dir {
            Invocation::shell(&format!("mkdir {} && {}", quoted(dir.as_os_str()), command.quoted()))
        } else {
            command
        })
    }
}

/// Returns all that are known, found or not.
pub(super) fn find(packfs: &Path) -> Vec<Result<Unpacker, Missing>> {
    let own = TABLE.own_unpackers.iter().map(|row| row.find_own(packfs));
    own.chain(TABLE.unpackers.iter().map(|row| row.find())).collect()
}

/// Returns true if there is an unpacker of this name, here or elsewhere.
pub fn is_unpacker(name: &str) -> bool {
    TABLE.own_unpackers.iter().chain(&TABLE.unpackers).any(|row| row.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::Unpack;
    use crate::subject::table::{Row, Unpacks};

    #[test]
    fn each_is_known_by_its_name() {
        for one in find(Path::new("/bin/true")) {
            let name = one.map_or_else(|missing| missing.what, |unpacker| unpacker.name().to_owned());
            assert!(is_unpacker(&name), "{name}");
        }
    }

    /// Making a tar, and a directory `d`, of the image `i` in four threads.
    fn spelled(row: &'static Row<Unpacks>) -> [Option<String>; 2] {
        let unpacker = Unpacker::in_bin(&row.name, &row.kind);
        [Unpack::Tar, Unpack::Dir("d".into())]
            .map(|task| unpacker.command(&task, Path::new("i"), 4).map(|command| command.spelled()))
    }

    #[test]
    fn each_spells_what_it_does() {
        let [tar, dir] = spelled(&TABLE.own_unpackers[0]);
        assert_eq!(tar.unwrap(), "packfs tar i --jobs 4");
        assert_eq!(dir.unwrap(), "packfs unpack i d --jobs 4 --quiet");
        let packfs = Unpacker::in_bin("packfs", &TABLE.own_unpackers[0].kind);
        let list = packfs.command(&Unpack::List, Path::new("i"), 4).map(|command| command.spelled());
        assert_eq!(list.unwrap(), "packfs ls -lR i");
        let rivals: Vec<_> = TABLE.unpackers.iter().map(spelled).collect();
        let [unsquashfs, sqfs2tar, fsck, dwarfs, xorriso, ..] = &rivals[..] else { panic!("the table") };
        let line = "unsquashfs -d d -processors 4 -no-progress -quiet i";
        assert_eq!(*unsquashfs, [None, Some(line.into())]);
        assert_eq!(*sqfs2tar, [Some("sqfs2tar i".into()), None]);
        assert_eq!(*fsck, [None, Some("fsck.erofs --extract=d --xattrs -d0 i".into())]);
        let line = "xorriso -report_about FATAL -osirrox on -indev stdio:i -extract / d";
        assert_eq!(*xorriso, [None, Some(line.into())]);
        let [tar, dir] = dwarfs.clone();
        assert_eq!(tar.unwrap(), "dwarfsextract -i i -f gnutar -n 4 --log-level=error");
        assert_eq!(
            dir.unwrap(),
            "sh -c 'mkdir d && /nowhere/bin/dwarfsextract -i i -o d -n 4 --log-level=error'"
        );
        let debugfs = spelled(TABLE.unpackers.iter().find(|row| row.name == "debugfs").unwrap());
        // A word in quotes inside a word in quotes.
        let line = r"sh -c 'mkdir d && /nowhere/bin/debugfs -R '\''rdump / d'\'' i'";
        assert_eq!(debugfs, [None, Some(line.into())]);
    }
}
