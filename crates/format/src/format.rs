//! What a format is to the rest of packfs.

use crate::{Coding, InlineTails, Placed, Plan, Section, Volume};
use packfs_core::{DeviceNumber, Error, FileType, Goal, Image, Node, NodeId, Owner, Result, Timestamp, Tree};
use std::path::PathBuf;
use std::sync::Arc;

/// An option that only one format knows, as `--help` and error messages name it.
#[derive(Clone, Copy, Debug)]
pub struct OptionRow {
    /// Its name, such as `fragments`.
    pub name: &'static str,
    /// What may be given, such as `on|off|always`.
    pub values: &'static str,
    /// What holds if it is not given.
    pub default: &'static str,
    /// What it does, in one line.
    pub help: &'static str,
}

/// What a user asked of a new image, before a format has looked at it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackSettings {
    /// Codec as typed: `NAME[:LEVEL][,KEY=VALUE...]`; `None`: the format's default.
    pub codec: Option<String>,
    /// Block size in bytes; `None`: the format's default.
    pub block_len: Option<u32>,
    /// What to choose where nothing else was asked for.
    pub goal: Goal,
    /// When the image was made, seconds since 1970.
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
    pub block_len: u32,
    /// Goal that decides where nothing was typed; `None`: as before.
    pub goal: Option<Goal>,
}

/// Bytes that stand at a fixed place in every image of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Magic {
    /// The bytes.
    pub bytes: &'static [u8],
    /// Where they stand, in bytes from the start of the image.
    pub at: u64,
}

/// One on-disk format. Formats are listed in one table, `packfs-formats`; nothing else knows them by name.
pub trait Format: Send + Sync {
    /// Its name, as users type it.
    fn name(&self) -> &'static str;

    /// Ways to pack that make smaller and smaller images, which take longer and longer to pack and read; none where there is
    /// no choice.
    fn ladder(&self) -> &'static [Rung] {
        &[]
    }

    /// File name extensions that mean it, without the dot.
    fn extensions(&self) -> &'static [&'static str];

    /// What to look for where images may begin anywhere, as in firmware; whoever finds one asks [`Format::probe`] next. None: such
    /// images are not to be found in that way.
    fn magics(&self) -> &'static [Magic];

    /// Name of the Linux driver that mounts images of this format, as `mount -t` takes it; `None` if Linux has none.
    fn driver(&self) -> Option<&'static str>;

    /// Whether the image starts like one of this format. Short images are simply not.
    fn probe(&self, image: &dyn Image) -> Result<bool>;

    /// Opens an image: checks what describes the whole, nothing more.
    fn open(&self, image: Arc<dyn Image>) -> Result<Box<dyn Volume>>;

    /// Opens an image whose data lies on further devices, given in the order in which the image lists them.
    ///
    /// Errors: as [`Format::open`]; `Usage` if the format has no further devices, or the image another number of them.
    fn open_with_devices(
        &self,
        image: Arc<dyn Image>,
        devices: Vec<Arc<dyn Image>>,
    ) -> Result<Box<dyn Volume>> {
        if devices.is_empty() {
            return self.open(image);
        }
        Err(Error::usage(format!(
            "{} is a {} image, which has no further devices",
            image.name(),
            self.name()
        )))
    }

    /// The options that [`Format::packer`] takes besides codec and block size.
    fn options(&self) -> &'static [OptionRow];

    /// Prepares to pack.
    ///
    /// Errors: `Usage` for settings out of range (saying what is allowed), `Unsupported` for a read-only format.
    fn packer(&self, settings: &PackSettings) -> Result<Box<dyn PackFormat>>;
}

/// What a format that holds one image, and no tree, makes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrapping {
    /// The name of the one file that the tree to pack has, with the metadata of [`crate::ContainedFiles`].
    pub file_name: &'static str,
    /// Its length has to be a multiple of this, in bytes; what is shorter is filled up with zeros.
    pub multiple_of: u64,
    /// The format of the image that is to be made of a source that is none; `None` if it was not named. `none` has every file
    /// taken for an image.
    pub inner: Option<String>,
}

/// A file for data, beside the image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFile {
    /// Where it is to be.
    pub path: PathBuf,
    /// Most bytes in it; `None`: as many as there are.
    pub len_max: Option<u64>,
}

/// The packing side of a format, with its settings.
pub trait PackFormat: Send + Sync {
    /// Its name.
    fn format_name(&self) -> &'static str;

    /// The codec and its settings as a user would type them.
    fn codec_name(&self) -> String;

    /// Name of the Linux driver that mounts the new image and shows what was packed; `None` if these settings, or the format,
    /// are beyond every driver. See [`Format::driver`].
    fn driver(&self) -> Option<&'static str> {
        None
    }

    /// How blocks of the new image are encoded; [`Coding::serves`] tells whether those of another image can be copied into it.
    fn coding(&self) -> Option<Coding> {
        None
    }

    /// Says that the format holds one image instead of a tree, and how that is to be given. A source that is an image is
    /// wrapped as it is then, and of any other an image is made first.
    fn wraps(&self) -> Option<Wrapping> {
        None
    }

    /// Warnings about options that say nothing of this tree, such as rules that no file matches.
    fn warnings(&self, _tree: &Tree) -> Vec<String> {
        Vec::new()
    }

    /// Decides: order, cuts, codecs, and what cannot be held. Pure: reads no contents. `first_used` is for
    /// [`Plan::first_used`].
    fn plan(&self, tree: &Tree, first_used: &[NodeId]) -> Result<Plan>;

    /// Makes everything around the data and hands it to `put`, part by part, in the order of the image where that matters
    /// for speed. Pure: the same tree, plan and places give the same sections.
    ///
    /// Sections do not overlap each other or the data, and leave no gap from the start of the image to its end.
    ///
    /// Errors: `Failed` for what only now turns out not to fit, and whatever `put` and `tails` return.
    fn layout(
        &self,
        tree: &Tree,
        plan: &Plan,
        placed: &Placed,
        tails: &dyn InlineTails,
        put: &mut dyn FnMut(Section) -> Result<()>,
    ) -> Result<()>;

    /// What is known only once all else of the image is written, such as its checksum: sections that replace bytes of those that
    /// [`PackFormat::layout`] gave. `image` is all of it, with its padding.
    ///
    /// Errors: whatever reading the image returns.
    fn seal(&self, image: &dyn Image) -> Result<Vec<Section>> {
        let _ = image;
        Ok(Vec::new())
    }

    /// The files that data are written to, if not to the image: [`Plan::data_start`] is 0 then, all places of data are in the
    /// row that these files make, one behind the other, and the sections alone fill the image. What is stored of one file of
    /// the tree lies in one of them, but for what it shares with others.
    fn data_files(&self) -> &[DataFile] {
        &[]
    }

    /// What an image says of a node with this time; `None` if it says another time of its own choice.
    fn held_time(&self, time: Timestamp) -> Option<Timestamp> {
        Some(time)
    }

    /// Whether an image holds a time of its own for each node of a type; elsewhere it says one of its own choice.
    fn holds_time_of(&self, file_type: FileType) -> bool {
        let _ = file_type;
        true
    }

    /// What an image says of a node with this owner.
    fn held_owner(&self, owner: Owner) -> Owner {
        owner
    }

    /// What an image says of a device with this number.
    fn held_device(&self, number: DeviceNumber) -> DeviceNumber {
        number
    }

    /// Whether an image can say that several names are one file; where it cannot, each is a file of its own.
    fn holds_links(&self) -> bool {
        true
    }

    /// Files share their data only if they have the same contents and the same number here: some readers take files that share
    /// data for one file, whatever else is said of them.
    fn sharing_key(&self, node: &Node) -> u64 {
        let _ = node;
        0
    }

    /// Whether an image can hold an extended attribute; others are left out.
    fn holds_xattr(&self, name: &[u8], value: &[u8]) -> bool {
        let _ = (name, value);
        true
    }

    /// Length of the finished image is rounded up to a multiple of this, with zeros.
    fn padding(&self) -> u64;
}
