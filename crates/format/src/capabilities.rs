//! Metadata that images of a format hold, as data: losses, verification and fidelity derive from
//! it.

use packfs_core::{DeviceNumber, FileType, Losses, Node, NodeId, NodeKind, Owner, Timestamp, Tree, Xattrs};

/// Modification times that an image holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// None of the tree: the image has times of its own.
    Unheld,
    /// Midnight of 1970-01-01 only.
    Epoch,
    /// Whole seconds from `min` to `max`, since 1970; the nearest of them stands for any other
    /// time.
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
    /// All, to the nanosecond.
    Nanoseconds,
}

impl Times {
    /// Seconds since 1970 in 32 bits without a sign.
    pub const UNSIGNED_32: Times =
        Times::Seconds { min: 0, max: u32::MAX as i64, first_year: "1970", last_day: "2106-02-07" };
}

/// Several names of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// An image says so.
    Held,
    /// Each becomes a file of its own, which readers hardly notice: a loss that is mentioned.
    Split,
    /// Each becomes a file of its own: a loss that is refused unless it is accepted.
    SplitIfAccepted,
}

/// A kind of extended attributes that is left out.
#[derive(Clone, Copy, Debug)]
pub struct XattrLoss {
    /// The loss in words.
    pub what: &'static str,
    /// True if an attribute of this name and value is left out.
    pub concerns: fn(&[u8], &[u8]) -> bool,
}

/// Every extended attribute is left out.
pub const NO_XATTRS: &[XattrLoss] =
    &[XattrLoss { what: "extended attributes are left out", concerns: |_, _| true }];

/// Metadata that an image holds of a tree.
#[derive(Clone, Copy, Debug)]
pub struct Capabilities {
    /// Modification times.
    pub times: Times,
    /// Types of nodes that have no time of their own, but that of the image.
    pub timeless: &'static [FileType],
    /// Bits of a user and of a group.
    pub owner_bits: (u32, u32),
    /// Bits of the major and of the minor number of a device.
    pub device_bits: (u32, u32),
    /// Hard links.
    pub links: Links,
    /// Extended attributes that are left out.
    pub xattr_losses: &'static [XattrLoss],
    /// True if readers take files that share data for one file, with the mode and owner of the name
    /// that was looked at first.
    pub data_identifies_files: bool,
}

impl Capabilities {
    /// Everything is held.
    pub const ALL: Capabilities = Capabilities {
        times: Times::Nanoseconds,
        timeless: &[],
        owner_bits: (32, 32),
        device_bits: (32, 32),
        links: Links::Held,
        xattr_losses: &[],
        data_identifies_files: false,
    };

    /// Returns the time that an image says of a node of a type with this time; `None` if it says
    /// another of its own choice.
    pub fn held_time(&self, file_type: FileType, time: Timestamp) -> Option<Timestamp> {
        match self.times {
            _ if self.timeless.contains(&file_type) => None,
            Times::Unheld => None,
            Times::Epoch => Some(Timestamp::default()),
            Times::Seconds { min, max, .. } => Some(Timestamp::from_seconds(time.seconds.clamp(min, max))),
            Times::Nanoseconds => Some(time),
        }
    }

    /// Returns the owner that an image says of a node with this owner.
    pub fn held_owner(&self, owner: Owner) -> Owner {
        Owner { uid: low_bits(owner.uid, self.owner_bits.0), gid: low_bits(owner.gid, self.owner_bits.1) }
    }

    /// Returns the number that an image says of a device with this number.
    pub fn held_device(&self, number: DeviceNumber) -> DeviceNumber {
        DeviceNumber {
            major: low_bits(number.major, self.device_bits.0),
            minor: low_bits(number.minor, self.device_bits.1),
        }
    }

    /// Returns true if an image can say that several names are one file.
    pub fn holds_links(&self) -> bool {
        self.links == Links::Held
    }

    /// Returns true if an image can hold an extended attribute.
    pub fn holds_xattr(&self, name: &[u8], value: &[u8]) -> bool {
        !self.xattr_losses.iter().any(|loss| (loss.concerns)(name, value))
    }

    /// Returns a key that two files of the same contents must have in common to share data:
    /// everything that readers would take from one of them for both.
    pub fn sharing_key(&self, node: &Node) -> Option<(u16, Owner)> {
        self.data_identifies_files.then(|| (node.meta.mode, self.held_owner(node.meta.owner)))
    }

    /// Adds the losses of a tree that follow from all this.
    pub fn find_losses(&self, tree: &Tree, losses: &mut Losses<'_>) {
        self.find_lost_numbers(tree, losses);
        for loss in self.xattr_losses {
            let concerns = |set: &Xattrs| set.iter().any(|(name, value)| (loss.concerns)(name, value));
            let sets: Vec<bool> = tree.xattr_sets().iter().map(concerns).collect();
            losses.refused(loss.what, |id| sets[tree.node(id).xattrs.0 as usize]);
        }
        let is_linked = |id: NodeId| !tree.node(id).is_dir() && tree.node(id).links > 1;
        let what = "hard links become files of their own, which share their data";
        match self.links {
            Links::Held => {}
            Links::Split => losses.tolerable(what, is_linked),
            Links::SplitIfAccepted => losses.refused(what, is_linked),
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
    // Thousands are set apart, as in all messages.
    let most = match low_bits(u32::MAX, bits) {
        most @ 1000..1_000_000 => format!("{},{:03}", most / 1000, most % 1000),
        most => most.to_string(),
    };
    format!("{what} above {most} lose all but {bits} bits")
}
