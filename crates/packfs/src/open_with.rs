//! Options that only some formats take: each goes to the layers whose format lists it.

use crate::layer::Layer;
use packfs_format::{Format, OpenOption, PartitionTable};
use std::path::PathBuf;

/// Options of [`OpenOptions`](crate::OpenOptions) as the caller gives them: files by path.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenWith {
    pub(crate) devices: Vec<PathBuf>,
    pub(crate) subvolume: Option<String>,
    pub(crate) no_journal: bool,
    pub(crate) partition_table: Option<PartitionTable>,
    pub(crate) snapshot: Option<String>,
    pub(crate) backing: Vec<PathBuf>,
    pub(crate) objects: Vec<PathBuf>,
}

impl OpenWith {
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

    pub(crate) fn gives(&self, option: OpenOption) -> bool {
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
}

/// True if one of these layers takes an option: of several, the outermost has it.
pub(crate) fn is_taken(option: OpenOption, layers: &[Layer]) -> bool {
    let mut outer = layers.iter().filter_map(|layer| packfs_formats::by_name(layer.format));
    outer.any(|outer| outer.info().opens_with.contains(&option))
}
