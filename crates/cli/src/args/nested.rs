//! Choice among images nested in each other.

use crate::args::{LayerArgs, RemoteArgs, TrustArgs};
use crate::out::listed::listed;
use packfs::OpenOptions;
use std::path::{Path, PathBuf};

/// Options of every verb that opens an image.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct NestedArgs {
    /// Read this part of a disk image, such as p2
    ///
    /// Without it, the only image of a known format is used, else the disk image itself; a warning
    /// lists the images. p2/root is the volume root of an LVM group in partition 2.
    #[arg(long, value_name = "NAME")]
    part: Option<String>,

    /// Open a cloop or disk image itself, not the image in it
    ///
    /// Refuses images behind a program (AppImage) and in a Singularity image, too.
    #[arg(long, conflicts_with = "part")]
    outer: bool,

    /// Read the image as if it started with MAGIC
    ///
    /// For images whose vendor changed the magic: hsqs or shsq for little-endian SquashFS of any
    /// version, sqsh or qshs for big-endian.
    #[arg(long, value_name = "MAGIC", value_parser = listed(parse_magic, packfs::magics),
        hide_possible_values = true)]
    magic: Option<Magic>,

    /// Continue if the superblock checksum does not match
    ///
    /// Applies to EROFS, cramfs, romfs, ext4, XFS and btrfs, whose superblock holds a checksum.
    #[arg(long)]
    ignore_checksum: bool,

    #[command(flatten)]
    layers: LayerArgs,

    #[command(flatten)]
    remote: RemoteArgs,

    #[command(flatten)]
    trust: TrustArgs,
}

/// First four bytes of an image.
#[derive(Clone, Copy, Debug)]
pub struct Magic([u8; 4]);

/// Reads the value of `--magic`.
pub fn parse_magic(text: &str) -> Result<Magic, String> {
    let known = packfs::magics();
    let magic = text.as_bytes().try_into().ok().filter(|_| known.contains(&text));
    magic.map(Magic).ok_or_else(|| format!("unknown magic; use {}", known.join(", ")))
}

impl From<Magic> for Vec<u8> {
    fn from(Magic(bytes): Magic) -> Self {
        bytes.into()
    }
}

impl NestedArgs {
    /// True if no option was given.
    pub fn is_default(&self) -> bool {
        let is_whole = self.part.is_none() && !self.outer && self.magic.is_none();
        is_whole && self.layers.is_default() && !self.is_checked()
    }

    /// True if the image is read as something else than it is in its file, or in spite of what it
    /// is, which no kernel can do.
    pub fn is_changed(&self) -> bool {
        self.magic.is_some() || self.ignore_checksum || !self.layers.is_default()
    }

    /// True if every block is checked against a root hash while it is read.
    pub fn is_checked(&self) -> bool {
        self.trust.is_given()
    }

    /// Returns the same without regard to checksums, for a verb that reports them itself.
    pub fn in_spite_of_checksums(&self) -> Self {
        NestedArgs { ignore_checksum: true, ..self.clone() }
    }

    /// Returns the files and directories that are read beside the image.
    pub fn files(&self, image: &Path) -> Vec<PathBuf> {
        let mut files = self.trust.files(image);
        files.extend(self.layers.files().cloned());
        files
    }

    /// Returns the directories of objects.
    pub fn objects(&self) -> &[PathBuf] {
        self.layers.objects()
    }

    /// Opens what was asked for.
    pub fn apply(&self, options: OpenOptions) -> OpenOptions {
        let options = self.trust.apply(self.remote.apply(self.layers.apply(options)));
        let options = if self.ignore_checksum { options.ignore_checksum() } else { options };
        let options = match self.magic {
            Some(magic) => options.magic(magic),
            None => options,
        };
        match &self.part {
            Some(name) => options.part(name),
            None if self.outer => options.outermost(),
            None => options,
        }
    }
}
