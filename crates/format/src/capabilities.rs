//! Metadata that a format can represent: losses, verification, and fidelity derive from it.

use packfs_core::{DeviceNumber, FileType, Losses, Node, NodeId, NodeKind, Owner, Timestamp, Tree, Xattrs};

const SPLIT_LINKS: &str = "hard links become separate files, which share their data";

/// Modification times that an image can store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// None; the image has its own times.
    Unheld,
    /// Midnight of 1970-01-01 only.
    Epoch,
    /// Whole seconds from `min` to `max`, since 1970; other times become the nearest of them.
    Seconds {
        /// First second.
        min: i64,
        /// Last second.
        max: i64,
        /// Year of the first second.
        first_year: &'static str,
        /// Day of the last second.
        last_day: &'static str,
    },
    /// All, with nanoseconds.
    Nanoseconds,
}

impl Times {
    /// Unsigned 32-bit seconds since 1970.
    pub const UNSIGNED_32: Times =
        Times::Seconds { min: 0, max: u32::MAX as i64, first_year: "1970", last_day: "2106-02-07" };
}

/// Storage of hard links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// Hard links.
    Held,
    /// Separate files, which readers hardly notice: a loss that is reported.
    Split,
    /// Separate files: a loss that is refused unless it is accepted.
    SplitIfAccepted,
}

/// A kind of extended attributes that is omitted.
#[derive(Clone, Copy, Debug)]
pub struct XattrLoss {
    /// Description of the loss.
    pub what: &'static str,
    /// True if an attribute with this name and value is omitted.
    pub concerns: fn(&[u8], &[u8]) -> bool,
}

/// All extended attributes are omitted.
pub const NO_XATTRS: &[XattrLoss] =
    &[XattrLoss { what: "extended attributes are left out", concerns: |_, _| true }];

/// Metadata of a tree that an image can represent.
#[derive(Clone, Copy, Debug)]
pub struct Capabilities {
    /// Modification times.
    pub times: Times,
    /// Types of nodes without a separate time; they have that of the image.
    pub timeless: &'static [FileType],
    /// Bits of a user and of a group.
    pub owner_bits: (u32, u32),
    /// Bits of the major and of the minor number of a device.
    pub device_bits: (u32, u32),
    /// Hard links.
    pub links: Links,
    /// Extended attributes that are left out.
    pub xattr_losses: &'static [XattrLoss],
    /// True if readers identify files by their data, with the mode and owner of the first name they
    /// read.
    pub data_identifies_files: bool,
}

impl Capabilities {
    /// Represents everything.
    pub const ALL: Capabilities = Capabilities {
        times: Times::Nanoseconds,
        timeless: &[],
        owner_bits: (32, 32),
        device_bits: (32, 32),
        links: Links::Held,
        xattr_losses: &[],
        data_identifies_files: false,
    };

    /// Returns the time that an image stores for a node of this type and time; `None` if it stores
    /// an unrelated one.
    pub fn held_time(&self, file_type: FileType, time: Timestamp) -> Option<Timestamp> {
        match self.times {
            _ if self.timeless.contains(&file_type) => None,
            Times::Unheld => None,
            Times::Epoch => Some(Timestamp::default()),
            Times::Seconds { min, max, .. } => Some(Timestamp::from_seconds(time.seconds.clamp(min, max))),
            Times::Nanoseconds => Some(time),
        }
    }

    /// Returns the owner that an image stores for this owner.
    pub fn held_owner(&self, owner: Owner) -> Owner {
        Owner { uid: low_bits(owner.uid, self.owner_bits.0), gid: low_bits(owner.gid, self.owner_bits.1) }
    }

    /// Returns the device number that an image stores for this number.
    pub fn held_device(&self, number: DeviceNumber) -> DeviceNumber {
        DeviceNumber {
            major: low_bits(number.major, self.device_bits.0),
            minor: low_bits(number.minor, self.device_bits.1),
        }
    }

    /// True if an image can represent hard links.
    pub fn holds_links(&self) -> bool {
        self.links == Links::Held
    }

    /// True if an image can represent an extended attribute.
    pub fn holds_xattr(&self, name: &[u8], value: &[u8]) -> bool {
        !self.xattr_losses.iter().any(|loss| (loss.concerns)(name, value))
    }

    /// Returns a key that two files with equal contents must have in common to share data: the
    /// attributes that readers would take from one of them for both.
    pub fn sharing_key(&self, node: &Node) -> Option<(u16, Owner)> {
        self.data_identifies_files.then(|| (node.meta.mode, self.held_owner(node.meta.owner)))
    }

    /// Adds the losses of a tree that follow from the capabilities.
    pub fn find_losses(&self, tree: &Tree, losses: &mut Losses<'_>) {
        self.find_lost_numbers(tree, losses);
        for loss in self.xattr_losses {
            let concerns = |set: &Xattrs| set.iter().any(|(name, value)| (loss.concerns)(name, value));
            let sets: Vec<bool> = tree.xattr_sets().iter().map(concerns).collect();
            losses.refused(loss.what, |id| sets[tree.node(id).xattrs.0 as usize]);
        }
        let is_linked = |id: NodeId| !tree.node(id).is_dir() && tree.node(id).links > 1;
        match self.links {
            Links::Held => {}
            Links::Split => losses.tolerable(SPLIT_LINKS, is_linked),
            Links::SplitIfAccepted => losses.refused(SPLIT_LINKS, is_linked),
        }
        self.find_lost_times(tree, losses);
    }

    fn find_lost_times(&self, tree: &Tree, losses: &mut Losses<'_>) {
        let mtime = |id: NodeId| tree.node(id).meta.mtime;
        let is_timeless = |id: NodeId| self.timeless.contains(&tree.node(id).kind.file_type());
        match self.times {
            Times::Unheld | Times::Nanoseconds => {}
            Times::Epoch => losses.tolerable("times become 1970", |id| mtime(id) != Timestamp::default()),
            Times::Seconds { min, max, first_year, last_day } => {
                let last_year = last_day.split('-').next().unwrap_or(last_day);
                losses.refused(&format!("times before {first_year} become {first_year}"), |id| {
                    mtime(id).seconds < min
                });
                losses.refused(&format!("times after {last_year} become {last_day}"), |id| {
                    mtime(id).seconds > max
                });
                losses.tolerable("times lose their fractions of a second", |id| mtime(id).nanos != 0);
            }
        }
        losses.tolerable("times of links, devices, fifos and sockets become that of the image", is_timeless);
    }

    fn find_lost_numbers(&self, tree: &Tree, losses: &mut Losses<'_>) {
        let owner = |id: NodeId| tree.node(id).meta.owner;
        let (uid_bits, gid_bits) = self.owner_bits;
        losses.refused(&cut("users", uid_bits), |id| low_bits(owner(id).uid, uid_bits) != owner(id).uid);
        losses.refused(&cut("groups", gid_bits), |id| low_bits(owner(id).gid, gid_bits) != owner(id).gid);
        let what = cut("device numbers", self.device_bits.0.min(self.device_bits.1));
        losses.refused(&what, |id| match tree.node(id).kind {
            NodeKind::BlockDevice(number) | NodeKind::CharDevice(number) => {
                self.held_device(number) != number
            }
            _ => false,
        });
    }
}

fn low_bits(number: u32, bits: u32) -> u32 {
    number & !u32::MAX.checked_shl(bits).unwrap_or(0)
}

fn cut(what: &str, bits: u32) -> String {
    // Thousands have separators, as in all messages.
    let most = match low_bits(u32::MAX, bits) {
        most @ 1000..1_000_000 => format!("{},{:03}", most / 1000, most % 1000),
        most => most.to_string(),
    };
    format!("{what} above {most} lose all but {bits} bits")
}
