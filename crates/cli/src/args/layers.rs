//! Options that only some formats of images take.

use packfs::{OpenOptions, PartitionTable};
use std::path::PathBuf;

/// Options of every verb that opens an image.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct LayerArgs {
    /// Read this btrfs subvolume: a path, a number, or /
    ///
    /// The default is the default subvolume of the image, as in Linux. / is the top level, which
    /// shows all subvolumes as directories.
    #[arg(long, value_name = "PATH|ID")]
    subvol: Option<String>,

    /// Read ext4, XFS, or btrfs without the changes in its journal
    ///
    /// By default, the journal of an image that was not unmounted is applied in memory, and one
    /// that cannot be read is an error. The image is never written.
    #[arg(long, visible_alias = "ignore-log")]
    no_journal: bool,

    /// Read this partition table of a disk
    ///
    /// The default is the table that Linux reads: a GPT only if the MBR has an entry of type 0xee.
    #[arg(long, value_name = "mbr|gpt")]
    partition_table: Option<PartitionTable>,

    /// Read this internal snapshot of a qcow2 image
    ///
    /// NAME is the name or number of the snapshot. The default is the current state.
    #[arg(long, value_name = "NAME")]
    snapshot: Option<String>,

    /// Read missing clusters of a qcow2 image from FILE
    ///
    /// May be given several times, in the order of the chain. Backing files that an image names are
    /// never opened unless given here.
    #[arg(long, value_name = "FILE")]
    allow_backing: Vec<PathBuf>,

    /// Read files of a composefs image from objects below DIR
    ///
    /// May be given several times. The digest of an object is verified before it is read.
    #[arg(long, value_name = "DIR")]
    objects: Vec<PathBuf>,
}

impl LayerArgs {
    /// True if no option was given.
    pub fn is_default(&self) -> bool {
        self.subvol.is_none()
            && !self.no_journal
            && self.partition_table.is_none()
            && self.snapshot.is_none()
            && self.allow_backing.is_empty()
            && self.objects.is_empty()
    }

    /// Returns the files and directories beside the image.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.allow_backing.iter().chain(&self.objects)
    }

    /// Returns the directories of objects.
    pub fn objects(&self) -> &[PathBuf] {
        &self.objects
    }

    /// Opens the image with these options.
    pub fn apply(&self, options: OpenOptions) -> OpenOptions {
        let options = match &self.subvol {
            Some(name) => options.subvolume(name),
            None => options,
        };
        let options = if self.no_journal { options.no_journal() } else { options };
        let options = match self.partition_table {
            Some(kind) => options.partition_table(kind),
            None => options,
        };
        let options = match &self.snapshot {
            Some(name) => options.snapshot(name),
            None => options,
        };
        let options = self.allow_backing.iter().fold(options, OpenOptions::allow_backing);
        self.objects.iter().fold(options, OpenOptions::objects)
    }
}

/// The same options for each of two images.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct LayersOfTwo {
    /// Read this btrfs subvolume of A: a path, a number, or /
    #[arg(long, visible_alias = "subvol", value_name = "PATH|ID")]
    subvol_a: Option<String>,

    /// Read this btrfs subvolume of B: a path, a number, or /
    #[arg(long, value_name = "PATH|ID")]
    subvol_b: Option<String>,

    /// Read A without the changes in its journal
    #[arg(long, visible_aliases = ["no-journal", "ignore-log", "ignore-log-a"])]
    no_journal_a: bool,

    /// Read B without the changes in its journal
    #[arg(long, visible_alias = "ignore-log-b")]
    no_journal_b: bool,

    /// Read this partition table of disk A
    #[arg(long, visible_alias = "partition-table", value_name = "mbr|gpt")]
    partition_table_a: Option<PartitionTable>,

    /// Read this partition table of disk B
    #[arg(long, value_name = "mbr|gpt")]
    partition_table_b: Option<PartitionTable>,

    /// Read this internal snapshot of qcow2 image A
    #[arg(long, visible_alias = "snapshot", value_name = "NAME")]
    snapshot_a: Option<String>,

    /// Read this internal snapshot of qcow2 image B
    #[arg(long, value_name = "NAME")]
    snapshot_b: Option<String>,

    /// Read missing clusters of qcow2 image A from FILE
    ///
    /// May be given several times, in the order of the chain.
    #[arg(long, visible_alias = "allow-backing", value_name = "FILE")]
    allow_backing_a: Vec<PathBuf>,

    /// Read missing clusters of qcow2 image B from FILE
    ///
    /// May be given several times, in the order of the chain.
    #[arg(long, value_name = "FILE")]
    allow_backing_b: Vec<PathBuf>,

    /// Read files of composefs image A from objects below DIR
    ///
    /// May be given several times.
    #[arg(long, visible_alias = "objects", value_name = "DIR")]
    objects_a: Vec<PathBuf>,

    /// Read files of composefs image B from objects below DIR
    ///
    /// May be given several times.
    #[arg(long, value_name = "DIR")]
    objects_b: Vec<PathBuf>,
}

impl LayersOfTwo {
    /// Returns the options of each image.
    pub fn each(&self) -> [LayerArgs; 2] {
        let LayersOfTwo {
            subvol_a,
            subvol_b,
            snapshot_a,
            snapshot_b,
            allow_backing_a,
            allow_backing_b,
            objects_a,
            objects_b,
            ..
        } = self.clone();
        let (journal_a, journal_b) = (self.no_journal_a, self.no_journal_b);
        let (table_a, table_b) = (self.partition_table_a, self.partition_table_b);
        let args = |subvol, no_journal, partition_table, snapshot, allow_backing, objects| LayerArgs {
            subvol,
            no_journal,
            partition_table,
            snapshot,
            allow_backing,
            objects,
        };
        [
            args(subvol_a, journal_a, table_a, snapshot_a, allow_backing_a, objects_a),
            args(subvol_b, journal_b, table_b, snapshot_b, allow_backing_b, objects_b),
        ]
    }
}
