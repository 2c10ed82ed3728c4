//! Options that only some formats take: each goes to the layers whose format lists it.

use crate::nested::{self, Layer};
#[cfg(feature = "integrity")]
use crate::objects::ObjectDirs;
use crate::{OpenOptions, Opened};
use packfs_core::{Error, Image, Result};
use packfs_format::{Format, Objects, OpenOption, Opening, PartitionTable};
use packfs_read::CountedImage;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options of [`Opening`] as the caller gives them: files by path.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenWith {
    pub(crate) devices: Vec<PathBuf>,
    subvolume: Option<String>,
    no_journal: bool,
    partition_table: Option<PartitionTable>,
    snapshot: Option<String>,
    backing: Vec<PathBuf>,
    objects: Vec<PathBuf>,
}

impl OpenOptions {
    /// A further file or block device that holds data of the image: EROFS: blobs, layers, a tar
    /// that is only indexed; ext4: an external journal; XFS: a realtime device; btrfs: the other
    /// devices; LVM: the other physical volumes of a group. One that lies in a disk, such as a
    /// partition in a qcow2 image, is found there if it is the only one. To be called once for
    /// each; for EROFS in the order in which the image lists them.
    #[must_use]
    pub fn device(mut self, path: impl AsRef<Path>) -> Self {
        self.with.devices.push(path.as_ref().into());
        self
    }

    /// Opens this subvolume of a btrfs image, by its path or number; `/` is the top level. The
    /// default is the image's default subvolume, as in Linux.
    #[must_use]
    pub fn subvolume(mut self, name: impl Into<String>) -> Self {
        self.with.subvolume = Some(name.into());
        self
    }

    /// Reads ext4 and XFS as they are on disk. The default applies the changes in the journal of an
    /// image that was not unmounted, in memory.
    #[must_use]
    pub fn no_journal(mut self) -> Self {
        self.with.no_journal = true;
        self
    }

    /// Reads the partition table of this kind, whatever the disk begins with. The default is the
    /// one that Linux reads: a GPT counts only if the MBR has an entry for it.
    #[must_use]
    pub fn partition_table(mut self, kind: PartitionTable) -> Self {
        self.with.partition_table = Some(kind);
        self
    }

    /// Opens this internal snapshot of a qcow2 image, by its name or number. The default is the
    /// current state.
    #[must_use]
    pub fn snapshot(mut self, name: impl Into<String>) -> Self {
        self.with.snapshot = Some(name.into());
        self
    }

    /// Backing file of a qcow2 image. To be called once for each file of a chain, in its order:
    /// paths in images are never opened.
    #[must_use]
    pub fn allow_backing(mut self, path: impl AsRef<Path>) -> Self {
        self.with.backing.push(path.as_ref().into());
        self
    }

    /// Directory with the objects of a composefs image, which hold contents of its files. To be
    /// called once for each directory: an object is taken from the first that has it, and its
    /// digest is verified when it is opened.
    #[cfg(feature = "integrity")]
    #[must_use]
    pub fn objects(mut self, dir: impl AsRef<Path>) -> Self {
        self.with.objects.push(dir.as_ref().into());
        self
    }
}

impl OpenWith {
    /// Returns the options that a format takes within such layers, and warnings about containers of
    /// devices: of several layers that take an option, the outermost has it. Files are counted
    /// among the reads of the image.
    pub(crate) fn opening(
        &self,
        format: &dyn Format,
        layers: &[Layer],
        counted: &Arc<CountedImage>,
        places: &OpenOptions,
    ) -> Result<(Opening, Vec<String>)> {
        let open = |paths: &[PathBuf]| -> Result<Vec<Arc<dyn Image>>> {
            paths.iter().map(|path| Ok(counted.beside(places.bytes_at(path)?) as Arc<dyn Image>)).collect()
        };
        let mut warnings = Vec::new();
        let mut opening = Opening::default();
        for &option in format.info().opens_with.iter().filter(|option| !is_taken(**option, layers)) {
            match option {
                OpenOption::Devices => {
                    for file in open(&self.devices)? {
                        // Files that a disk image names are taken as they are.
                        let is_named = format.info().opens_with.contains(&OpenOption::Backing);
                        let (device, found) = match is_named {
                            true => (file, Vec::new()),
                            false => nested::unwrapped(file, format, &OpenOptions::new())?,
                        };
                        opening.devices.push(device);
                        warnings.extend(found);
                    }
                }
                OpenOption::Subvolume => opening.subvolume.clone_from(&self.subvolume),
                OpenOption::Journal => opening.no_journal = self.no_journal,
                OpenOption::PartitionTable => opening.partition_table = self.partition_table,
                OpenOption::Snapshot => opening.snapshot.clone_from(&self.snapshot),
                OpenOption::Backing => opening.backing = open(&self.backing)?,
                OpenOption::Objects => opening.objects = self.opened_objects()?,
            }
        }
        Ok((opening, warnings))
    }

    /// Returns the format of an image within such layers: with an option that only one format
    /// takes, that one, whatever the image begins with, unless it is a container of disks.
    pub(crate) fn format(
        &self,
        probed: Option<&'static dyn Format>,
        layers: &[Layer],
    ) -> Option<&'static dyn Format> {
        let is_container = probed.is_some_and(|format| format.info().driver.is_none());
        if is_container || !self.chooses_format() || is_taken(OpenOption::PartitionTable, layers) {
            return probed;
        }
        let takes = |format: &&&dyn Format| format.info().opens_with.contains(&OpenOption::PartitionTable);
        packfs_formats::all().iter().find(takes).copied().or(probed)
    }

    /// True if an option says the format of the image.
    pub(crate) fn chooses_format(&self) -> bool {
        self.gives(OpenOption::PartitionTable)
    }

    /// True if no option is given.
    #[cfg(feature = "pack")]
    pub(crate) fn is_default(&self) -> bool {
        OpenOption::ALL.into_iter().all(|option| !self.gives(option))
    }

    #[cfg(feature = "integrity")]
    fn opened_objects(&self) -> Result<Option<Arc<dyn Objects>>> {
        match &self.objects[..] {
            [] => Ok(None),
            dirs => Ok(Some(Arc::new(ObjectDirs::open(dirs)?))),
        }
    }

    #[cfg(not(feature = "integrity"))]
    fn opened_objects(&self) -> Result<Option<Arc<dyn Objects>>> {
        Ok(None)
    }

    fn gives(&self, option: OpenOption) -> bool {
        match option {
            OpenOption::Devices => !self.devices.is_empty(),
            OpenOption::Subvolume => self.subvolume.is_some(),
            OpenOption::Journal => self.no_journal,
            OpenOption::PartitionTable => self.partition_table.is_some(),
            OpenOption::Snapshot => self.snapshot.is_some(),
            OpenOption::Backing => !self.backing.is_empty(),
            OpenOption::Objects => !self.objects.is_empty(),
        }
    }

    /// Refuses an option that no layer of the image takes.
    pub(crate) fn check_taken(&self, opened: &Opened) -> Result<()> {
        let takes = |option| {
            let outer = opened.layers().iter().filter_map(|layer| packfs_formats::by_name(layer.format));
            outer.chain([opened.format()]).any(|format| format.info().opens_with.contains(&option))
        };
        match OpenOption::ALL.into_iter().find(|&option| self.gives(option) && !takes(option)) {
            None => Ok(()),
            Some(option) => Err(Error::usage(format!(
                "{} is a {} image, which has no {}",
                opened.image().name(),
                opened.format().name(),
                option.things()
            ))),
        }
    }
}

/// True if one of these layers takes an option: of several, the outermost has it.
fn is_taken(option: OpenOption, layers: &[Layer]) -> bool {
    let mut outer = layers.iter().filter_map(|layer| packfs_formats::by_name(layer.format));
    outer.any(|outer| outer.info().opens_with.contains(&option))
}
