//! Identity of a format: everything known without an image.

use crate::{OpenOption, OptionRow};
use packfs_core::{Goal, Image, Result};

/// Settings of a new image as given by the caller, not yet checked by a format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackSettings {
    /// Codec as typed: `NAME[:LEVEL][,KEY=VALUE...]`; `None`: the format's default.
    pub codec: Option<String>,
    /// Block size in bytes; `None`: the format's default.
    pub block_size: Option<u32>,
    /// Goal, for choices that no option makes.
    pub optimize: Goal,
    /// Creation time of the image, seconds since 1970.
    pub made_at: i64,
    /// Options of the format, as typed.
    pub options: Vec<(String, String)>,
}

/// A way to pack that makes smaller images than the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rung {
    /// Codec as users type it.
    pub codec: &'static str,
    /// Block size in bytes.
    pub block_size: u32,
    /// Goal, for choices that no option makes; `None`: as before.
    pub optimize: Option<Goal>,
}

/// Bytes at a fixed offset in every image of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Magic {
    /// The bytes.
    pub bytes: &'static [u8],
    /// Their offset from the start of the image.
    pub at: u64,
}

impl Magic {
    /// Returns true if an image has the bytes.
    pub fn is_in(&self, image: &dyn Image) -> Result<bool> {
        let mut found = vec![0; self.bytes.len()];
        Ok(image.read_at(self.at, &mut found)? == found.len() && found == self.bytes)
    }
}

/// Linux's driver of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinuxDriver {
    /// Name, as `mount -t` takes it.
    pub name: &'static str,
    /// True if it mounts a regular file without a loop device, on kernels that can (EROFS from 6.12
    /// on).
    pub mounts_files: bool,
}

/// Input of an image of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Makes {
    /// A tree of files.
    Tree,
    /// Another image.
    Image,
    /// None: the format is only read.
    Nothing,
}

/// Identity of a format: everything known without an image.
#[derive(Debug)]
pub struct FormatInfo {
    /// Name, as users type it.
    pub name: &'static str,
    /// File name extensions that mean it, without the dot; the first is the usual one.
    pub extensions: &'static [&'static str],
    /// Magic bytes used to scan blobs such as firmware. Each hit must be confirmed with
    /// [`crate::Format::probe`]. Empty if images cannot be found by magic bytes.
    pub magics: &'static [Magic],
    /// Linux's driver; `None` if it has none.
    pub driver: Option<LinuxDriver>,
    /// Input that images are made of.
    pub makes: Makes,
    /// Set if images contain no free space, so that their length shows how well files compress.
    pub is_dense: bool,
    /// Options that [`crate::Format::open_with`] takes.
    pub opens_with: &'static [OpenOption],
    /// Options that [`crate::Format::packer`] takes besides codec and block size.
    pub options: &'static [OptionRow],
    /// Ways to pack, each with smaller images than the one before, which take longer to pack and
    /// read; empty if there is no choice.
    pub ladder: &'static [Rung],
}

impl PackSettings {
    /// Returns names and values of the options as typed.
    pub fn typed_options(&self) -> impl Iterator<Item = (&str, &str)> {
        self.options.iter().map(|(name, value)| (&**name, &**value))
    }
}

impl FormatInfo {
    /// A read-only format without a name: defaults of fields.
    pub const EMPTY: FormatInfo = FormatInfo {
        name: "",
        extensions: &[],
        magics: &[],
        driver: None,
        makes: Makes::Nothing,
        is_dense: false,
        opens_with: &[],
        options: &[],
        ladder: &[],
    };

    /// Returns the name of Linux's driver, if there is one.
    pub fn driver_name(&self) -> Option<&'static str> {
        self.driver.map(|driver| driver.name)
    }
}
