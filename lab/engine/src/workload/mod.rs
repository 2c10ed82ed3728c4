//! What is done to a subject: one row each, with the document it comes from, and the commands it is made of.
//!
//! Rows say what a workload is and what it needs; who runs it is [`crate::session`].

mod commands;
mod draw;
mod lists;
mod pieces;

use serde::{Deserialize, Serialize};

pub use commands::{Places, Reading, reading};
pub use lists::{Listed, Lists, files_of};
pub use pieces::read_pieces;

pub(crate) use draw::{Random, shuffled};
pub(crate) use lists::as_list;

/// One workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// How long the image becomes; nothing is run but its maker.
    ImageSize,
    /// Makes the image.
    Build,
    /// Decodes everything without a mount.
    Decode,
    /// Unpacks everything into a folder in memory.
    Unpack,
    /// Reads everything, directory by directory.
    SequentialData,
    /// Looks at every inode.
    SequentialMetadata,
    /// Lists everything with its facts.
    List,
    /// Lists everything as `find` does.
    Find,
    /// Reads 500 files, drawn by lot.
    SmallRandomData,
    /// Looks at 500 inodes, drawn by lot.
    SmallRandomMetadata,
    /// Reads all files in an order drawn by lot.
    FullRandomData,
    /// Reads all files in an order drawn by lot, four at a time.
    ParallelRandomData,
    /// Looks at all inodes of files in an order drawn by lot.
    FullRandomMetadata,
    /// Reads all files, the smallest first.
    SizeOrder,
    /// Reads what a system starts from.
    TarPrograms,
    /// Reads one large file from its beginning to its end.
    LargeSequential,
    /// Reads all of one large file in pieces of 4 KiB, in an order drawn by lot.
    LargeRandom,
    /// Reads a twentieth of one large file likewise.
    LargeSmallRandom,
    /// Copies the tree to a writable file system.
    Write,
    /// Reads a copied tree by tar.
    TarRead,
    /// Copies the tree away from where it lies, to memory.
    CpRead,
    /// What the tree takes on a writable file system, codec by codec.
    DiskUsage,
}

/// What has to be there for a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// An image, and nothing is read.
    Image,
    /// A maker of images, run again and again.
    Maker,
    /// A program that decodes an image without mounting it.
    Unpacker,
    /// A mount of an image, or of a writable file system.
    Mount,
    /// A mount of a tree whose largest file is read.
    LargeFile,
    /// A writable file system.
    Writable,
}

/// What is known of a workload.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Which one.
    pub workload: Workload,
    /// As it is asked for and as results name it.
    pub name: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// The command, as the document has it or nearly so.
    pub command: &'static str,
    /// What it needs.
    pub need: Need,
    /// The documents that measure so, by the names of [`crate::seed`].
    pub seeds: &'static [&'static str],
}

const fn row(
    workload: Workload,
    name: &'static str,
    title: &'static str,
    command: &'static str,
    need: Need,
    seeds: &'static [&'static str],
) -> Row {
    Row { workload, name, title, command, need, seeds }
}

/// All workloads, in the order in which a session runs them.
pub const WORKLOADS: [Row; 22] = [
    row(
        Workload::ImageSize,
        "image-size",
        "Image size",
        "stat --format=%s IMAGE",
        Need::Image,
        &["erofs-perf", "squashfs21", "gentle", "tools-ng"],
    ),
    row(Workload::Build, "build", "Time to build", "time MAKER ... IMAGE", Need::Maker, &["tools-ng"]),
    row(
        Workload::Decode,
        "decode",
        "Decompression only",
        "time UNPACKER IMAGE > /dev/null",
        Need::Unpacker,
        &["tools-ng"],
    ),
    row(Workload::Unpack, "unpack", "Unpacking", "time UNPACKER IMAGE DIR", Need::Unpacker, &[]),
    row(
        Workload::SequentialData,
        "sequential-data",
        "Sequential data access",
        "tar cf - . | cat > /dev/null",
        Need::Mount,
        &["erofs-perf", "squashfs21"],
    ),
    row(
        Workload::SequentialMetadata,
        "sequential-metadata",
        "Sequential metadata access",
        "tar cf /dev/null .",
        Need::Mount,
        &["erofs-perf"],
    ),
    row(
        Workload::List,
        "list",
        "Directory lookup",
        "ls -lR --color=always | cat > /dev/null",
        Need::Mount,
        &["squashfs21"],
    ),
    row(Workload::Find, "find", "find . -ls", "find . -ls > /dev/null", Need::Mount, &[]),
    row(
        Workload::SmallRandomData,
        "small-random-data",
        "Small random data access (500 files)",
        "cat list | xargs -0 cat > /dev/null",
        Need::Mount,
        &["erofs-perf"],
    ),
    row(
        Workload::SmallRandomMetadata,
        "small-random-metadata",
        "Small random metadata access (500 files)",
        "cat list | xargs -0 stat > /dev/null",
        Need::Mount,
        &["erofs-perf"],
    ),
    row(
        Workload::FullRandomData,
        "full-random-data",
        "Full random data access (all files)",
        "cat list | xargs -0 cat > /dev/null",
        Need::Mount,
        &["erofs-perf"],
    ),
    row(
        Workload::ParallelRandomData,
        "parallel-random-data",
        "Full random data access by four readers",
        "cat list | xargs -0 -P 4 -n 64 cat > /dev/null",
        Need::Mount,
        &[],
    ),
    row(
        Workload::FullRandomMetadata,
        "full-random-metadata",
        "Full random metadata access (all files)",
        "cat list | xargs -0 stat > /dev/null",
        Need::Mount,
        &["erofs-perf"],
    ),
    row(
        Workload::SizeOrder,
        "size-order",
        "Random I/O: the smallest file first",
        "cpio -0 -o --quiet -H newc < list > /dev/null",
        Need::Mount,
        &["squashfs21"],
    ),
    row(
        Workload::TarPrograms,
        "tar-programs",
        "tar of usr/bin",
        "tar cf - usr/bin | cat > /dev/null",
        Need::Mount,
        &["gentle"],
    ),
    row(
        Workload::LargeSequential,
        "large-sequential",
        "Sequential I/Os on one large file",
        "fio -filename=FILE -bs=4k -rw=read -name=job1",
        Need::LargeFile,
        &["erofs-perf"],
    ),
    row(
        Workload::LargeRandom,
        "large-random",
        "Full random I/Os on one large file",
        "fio -filename=FILE -bs=4k -rw=randread -name=job1",
        Need::LargeFile,
        &["erofs-perf"],
    ),
    row(
        Workload::LargeSmallRandom,
        "large-small-random",
        "Small random I/Os (5 %) on one large file",
        "fio -filename=FILE -bs=4k -rw=randread --io_size=5% -name=job1",
        Need::LargeFile,
        &["erofs-perf"],
    ),
    row(Workload::Write, "write", "Write test", "cp -a TREE MOUNT && sync", Need::Writable, &["daily"]),
    row(
        Workload::TarRead,
        "tar-read",
        "tar read test",
        "tar -c MOUNT | cat > /dev/null",
        Need::Mount,
        &["daily"],
    ),
    row(Workload::CpRead, "cp-read", "cp read test", "cp -a MOUNT /dev/shm/...", Need::Mount, &["daily"]),
    row(
        Workload::DiskUsage,
        "disk-usage",
        "Disk usage by codec",
        "compsize -x MOUNT",
        Need::Writable,
        &["daily"],
    ),
];

impl Workload {
    /// What is known of it.
    pub fn row(self) -> &'static Row {
        // Rows stand in the order of the enumeration; a test holds them to it.
        &WORKLOADS[self as usize]
    }

    /// As it is asked for.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// What it needs.
    pub fn need(self) -> Need {
        self.row().need
    }

    /// The one of this name.
    ///
    /// Errors: there is none; the message lists all.
    pub fn named(name: &str) -> packfs::Result<Self> {
        WORKLOADS.iter().find(|row| row.name == name).map(|row| row.workload).ok_or_else(|| {
            let known: Vec<_> = WORKLOADS.iter().map(|row| row.name).collect();
            packfs::Error::usage(format!("there is no workload {name:?}"))
                .hint(format!("there are {}", known.join(", ")))
        })
    }

    /// Whether something is run and timed.
    pub fn is_timed(self) -> bool {
        !matches!(self, Self::ImageSize | Self::DiskUsage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_the_workloads_and_are_named_as_results_spell_them() {
        for row in &WORKLOADS {
            assert_eq!(row.workload.row().name, row.name);
            let spelled = serde_json::to_value(row.workload).unwrap();
            assert_eq!(spelled, row.name);
            assert_eq!(Workload::named(row.name).unwrap(), row.workload);
        }
    }

    #[test]
    fn an_unknown_one_is_refused_with_those_there_are() {
        let error = Workload::named("compile").unwrap_err();
        assert!(error.hints()[0].contains("sequential-data"), "{error:?}");
    }
}
