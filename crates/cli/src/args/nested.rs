//! Which of several images within each other is meant.

use crate::out::listed::listed;
use packfs::OpenOptions;

/// Options of every verb that opens an image.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct NestedArgs {
    /// The image to look at where a container holds several, such as the partitions of a disk: p2,
    /// or 2
    #[arg(long, value_name = "NAME")]
    part: Option<String>,

    /// Look at the container itself (a cloop, a table of partitions), not at the image in it
    #[arg(long, conflicts_with = "part")]
    outer: bool,

    /// Read the image as if it began with these four characters, where its maker changed them: hsqs
    /// or shsq for little-endian SquashFS of any version, sqsh or qshs for big-endian
    #[arg(long, value_name = "MAGIC", value_parser = listed(parse_magic, packfs::magics),
        hide_possible_values = true)]
    magic: Option<Magic>,

    /// Go on where the image's own checksum is not that of its bytes (EROFS, cramfs, romfs)
    #[arg(long)]
    ignore_checksum: bool,
}

/// What an image is to begin with.
#[derive(Clone, Copy, Debug)]
pub struct Magic([u8; 4]);

/// Reads the value of `--magic`.
pub fn parse_magic(text: &str) -> Result<Magic, String> {
    let known = packfs::magics();
    let magic = text.as_bytes().try_into().ok().filter(|_| known.contains(&text));
    magic
        .map(Magic)
        .ok_or_else(|| format!("no magic of four characters that packfs reads: {}", known.join(", ")))
}

impl From<Magic> for Vec<u8> {
    fn from(Magic(bytes): Magic) -> Self {
        bytes.into()
    }
}

impl NestedArgs {
    /// Whether nothing was asked for.
    pub fn is_default(&self) -> bool {
        self.part.is_none() && !self.outer && self.magic.is_none()
    }

    /// True if the image is read as something else than it is in its file, or in spite of what it
    /// is, which no kernel can do.
    pub fn is_changed(&self) -> bool {
        self.magic.is_some() || self.ignore_checksum
    }

    /// As it is, without regard to checksums: for a verb that tells of them itself.
    pub fn in_spite_of_checksums(&self) -> Self {
        NestedArgs { ignore_checksum: true, ..self.clone() }
    }

    /// Opens what was asked for.
    pub fn apply(&self, options: OpenOptions) -> OpenOptions {
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
