//! Limits of an input, and counters of what it contains.
//!
//! Formats and archives bound most values by themselves (a name, a target, the attributes of one
//! inode). The limits here bound values that are harmless individually and harmful together. Every
//! default is far beyond the values of genuine images.

use crate::{Error, Result, Xattrs};

/// Kind of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// Names, each hard link counted.
    Entries,
    /// Nesting of directories.
    Depth,
    /// Bytes of one name.
    NameLen,
    /// Bytes of the target of one symbolic link.
    TargetLen,
    /// Bytes of names and values of the extended attributes of one inode.
    InodeXattrs,
    /// Total of all inodes, including those that share a set.
    Xattrs,
    /// Bytes of all files together, holes included, each inode once.
    Bytes,
    /// Length of all file data in multiples of the input's length, without holes; data shared by
    /// inodes counts for each. No codec exceeds the default with data that is not shared.
    Ratio,
    /// Bytes of memory for names, metadata and attributes of a whole hierarchy.
    Memory,
}

/// Name, text and default of a limit.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LimitRow {
    /// The limit.
    pub limit: Limit,
    /// Option of the command line, without dashes.
    pub option: &'static str,
    /// Unit in messages, following a number.
    pub counted: &'static str,
    /// Value without the option.
    pub default: u64,
    /// True for a number of bytes, which may be typed with a unit.
    pub is_size: bool,
    /// Help of the option.
    pub help: &'static str,
}

/// Limits in bytes, which may be typed with a unit, and others.
const SIZE: bool = true;
const N: bool = false;

macro_rules! limits {
    ($(
        $(#[doc = $doc:literal])+
        $limit:ident, $option:literal, $is_size:ident, $counted:literal, $default:expr;
    )+) => {
        /// Every limit, with its default.
        pub const LIMITS: [LimitRow; [$($option),+].len()] = [$(LimitRow {
            limit: Limit::$limit,
            option: $option,
            counted: $counted,
            default: $default,
            is_size: $is_size,
            help: concat!($($doc, "\n"),+),
        }),+];
    };
}

limits! {
    /// Limit the number of entries
    ///
    /// Hard links count, and so do directories that only a path implies.
    Entries, "max-entries", N, "names", 100_000_000;

    /// Limit the depth of directories
    ///
    /// The root does not count.
    Depth, "max-depth", N, "directories within each other", 65_536;

    /// Limit the length of a name
    NameLen, "max-name", SIZE, "bytes of one name", 255;

    /// Limit the length of a symlink target
    TargetLen, "max-target", SIZE, "bytes of one link target", 65_535;

    /// Limit the xattrs of one inode
    InodeXattrs, "max-inode-xattrs", SIZE, "bytes of extended attributes of one inode", 80 << 20;

    /// Limit the xattrs of all inodes
    Xattrs, "max-xattrs", SIZE, "bytes of extended attributes of all inodes", 2 << 30;

    /// Limit the length of all files, holes included
    ///
    /// Each inode counts once; for cat, the file alone counts.
    Bytes, "max-bytes", SIZE, "bytes of all files, holes included", 64 << 40;

    /// Limit file bytes for each byte of input
    ///
    /// Holes do not count, devices do. 16 GiB are always allowed, unless the option is given.
    Ratio, "max-ratio", N, "bytes of file data for each byte of the input", 40_000;

    /// Limit memory for names and metadata
    ///
    /// Estimated from number and length, for verbs that hold a whole hierarchy: all but ls, cat and
    /// stat.
    Memory, "max-memory", SIZE, "bytes of memory for names and metadata", 8 << 30;
}

/// Value that means no limit.
const NONE: u64 = u64::MAX;

/// Length of file data that is always allowed, whatever [`Limit::Ratio`] says.
pub const RATIO_FLOOR: u64 = 16 << 30;

/// Estimated memory of an entry besides its name, in bytes: nodes and rows while a tree is built
/// and afterwards.
const ENTRY_MEMORY: u64 = 300;

/// Limits on an input; [`LIMITS`] has the defaults.
///
/// ```
/// use packfs_core::{Limit, Limits};
/// let limits = Limits::default().allow(Limit::Depth, 40).lift(Limit::Entries);
/// assert!(limits.check("image", Limit::Depth, 41).is_err());
/// assert!(limits.check("image", Limit::Entries, 1 << 60).is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    allowed: [u64; LIMITS.len()],
    ratio_floor: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { allowed: LIMITS.map(|row| row.default), ratio_floor: RATIO_FLOOR }
    }
}

impl Limits {
    /// Returns limits that allow everything that formats allow, for trusted input.
    pub fn none() -> Self {
        Limits { allowed: [NONE; LIMITS.len()], ratio_floor: RATIO_FLOOR }
    }

    /// Sets a limit; an explicit ratio applies to inputs of any length.
    #[must_use]
    pub fn allow(mut self, limit: Limit, allowed: u64) -> Self {
        self.allowed[limit as usize] = allowed;
        if limit == Limit::Ratio {
            self.ratio_floor = 0;
        }
        self
    }

    /// Removes a limit.
    #[must_use]
    pub fn lift(self, limit: Limit) -> Self {
        self.allow(limit, NONE)
    }

    /// Returns the allowed value; `None` means no limit.
    pub fn allowed(&self, limit: Limit) -> Option<u64> {
        Some(self.allowed[limit as usize]).filter(|&allowed| allowed != NONE)
    }

    /// Returns the most bytes of file data, without holes, for an input of this length.
    pub fn data_len_max(&self, input_len: u64) -> u64 {
        match self.allowed(Limit::Ratio) {
            Some(ratio) => input_len.saturating_mul(ratio).max(self.ratio_floor),
            None => NONE,
        }
    }

    /// Refuses a value above the limit; `subject` names the input, such as `squashfs image`.
    ///
    /// Errors: `Limit`, naming the found and the allowed value, and the option that allows more.
    pub fn check(&self, subject: &str, limit: Limit, found: u64) -> Result<()> {
        match self.allowed(limit) {
            Some(allowed) if found > allowed => {
                let counted = LIMITS[limit as usize].counted;
                Err(over(subject, limit, format_args!("{found} {counted}, at most {allowed} allowed")))
            }
            _ => Ok(()),
        }
    }

    /// Refuses too much file data for an input of this length; `data_len` is a lower bound.
    ///
    /// Errors: as [`Limits::check`].
    pub fn check_data(&self, subject: &str, data_len: u64, input_len: u64) -> Result<()> {
        let allowed = self.data_len_max(input_len);
        if data_len <= allowed {
            return Ok(());
        }
        let ratio = data_len.checked_div(input_len).unwrap_or(data_len);
        let fault = format_args!(
            "at least {data_len} bytes of file data, {ratio} for each of its own {input_len}, at most {allowed} allowed"
        );
        Err(over(subject, Limit::Ratio, fault))
    }
}

fn over(subject: &str, limit: Limit, fault: std::fmt::Arguments<'_>) -> Error {
    let option = LIMITS[limit as usize].option;
    Error::limit(subject, fault)
        .hint(format!("--{option} allows more, or none for no such limit, for trusted input"))
}

/// Counts the contents of one input, and refuses it once a limit is exceeded.
#[derive(Clone, Debug)]
pub struct Meter {
    limits: Limits,
    subject: String,
    entries: u64,
    xattrs: u64,
    bytes: u64,
    memory: u64,
}

impl Meter {
    /// Creates a meter at zero; `subject` as for [`Limits::check`].
    pub fn new(limits: Limits, subject: impl Into<String>) -> Self {
        Meter { limits, subject: subject.into(), entries: 0, xattrs: 0, bytes: 0, memory: 0 }
    }

    fn check(&self, limit: Limit, found: u64) -> Result<()> {
        self.limits.check(&self.subject, limit, found)
    }

    /// Counts a name; `depth` is the number of directories above it, without the root.
    ///
    /// Errors: `Limit`, as for all that follow.
    pub fn entry(&mut self, depth: u64, name_len: usize) -> Result<()> {
        self.entries = self.entries.saturating_add(1);
        self.check(Limit::Entries, self.entries)?;
        self.check(Limit::Depth, depth)?;
        self.check(Limit::NameLen, name_len as u64)
    }

    /// Counts directories that no entry describes, but that are kept in memory for their contents.
    pub fn implied(&mut self, count: u64) -> Result<()> {
        self.entries = self.entries.saturating_add(count);
        self.check(Limit::Entries, self.entries)?;
        self.remember(count.saturating_mul(ENTRY_MEMORY))
    }

    /// Counts the memory of a name.
    pub fn hold(&mut self, name_len: usize) -> Result<()> {
        self.remember(ENTRY_MEMORY.saturating_add(name_len as u64))
    }

    fn remember(&mut self, len: u64) -> Result<()> {
        self.memory = self.memory.saturating_add(len);
        self.check(Limit::Memory, self.memory)
    }

    /// Counts the target of a symbolic link, and its memory.
    pub fn target(&mut self, len: usize) -> Result<()> {
        self.check(Limit::TargetLen, len as u64)?;
        self.remember(len as u64)
    }

    /// Counts the attributes of an inode, and their memory.
    pub fn xattrs(&mut self, xattrs: &Xattrs) -> Result<()> {
        let lens = xattrs.iter().flat_map(|(name, value)| [name.len() as u64, value.len() as u64]);
        let len = lens.fold(0, u64::saturating_add);
        self.check(Limit::InodeXattrs, len)?;
        self.xattrs = self.xattrs.saturating_add(len);
        self.check(Limit::Xattrs, self.xattrs)?;
        self.remember(len)
    }

    /// Counts a file of `len` bytes.
    pub fn file(&mut self, len: u64) -> Result<()> {
        self.bytes = self.bytes.saturating_add(len);
        self.check(Limit::Bytes, self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn the_table_is_in_the_order_of_the_limits() {
        for (index, row) in LIMITS.iter().enumerate() {
            assert_eq!(row.limit as usize, index, "{}", row.option);
            assert_eq!(Limits::default().allowed(row.limit), Some(row.default));
        }
    }

    #[test]
    fn an_error_names_what_was_found_what_is_allowed_and_the_option() {
        for row in LIMITS {
            let limits = Limits::none().allow(row.limit, 7);
            assert!(limits.check("tar archive", row.limit, 7).is_ok());
            let error = limits.check("tar archive", row.limit, 8).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Limit);
            let text = error.to_string();
            assert!(text.starts_with("tar archive over a limit: 8 "), "{text}");
            assert!(text.contains(row.counted) && text.contains("at most 7 allowed"), "{text}");
            assert!(error.hints()[0].contains(&format!("--{} ", row.option)), "{:?}", error.hints());
        }
    }

    #[test]
    fn a_meter_without_limits_takes_any_count() {
        let mut meter = Meter::new(Limits::none(), "image");
        assert!(meter.implied(u64::MAX).is_ok());
        assert!(meter.entry(0, 1).is_ok() && meter.hold(1).is_ok());
    }

    #[test]
    fn a_meter_refuses_the_first_that_is_too_much() {
        let meter = |limit, allowed| Meter::new(Limits::none().allow(limit, allowed), "image");
        let mut entries = meter(Limit::Entries, 2);
        assert!(entries.entry(9, 255).is_ok() && entries.entry(9, 255).is_ok());
        assert!(entries.entry(0, 1).is_err());
        assert!(meter(Limit::Depth, 3).entry(3, 1).is_ok());
        assert!(meter(Limit::Depth, 3).entry(4, 1).is_err());
        assert!(meter(Limit::NameLen, 3).entry(0, 4).is_err());
        assert!(meter(Limit::TargetLen, 3).target(4).is_err());
        assert!(meter(Limit::Memory, 1000).hold(255).is_ok());
        assert!(meter(Limit::Memory, 500).hold(255).is_err());

        let set = Xattrs::from([(b"user.a".to_vec(), vec![0; 94])]);
        assert!(meter(Limit::InodeXattrs, 100).xattrs(&set).is_ok());
        assert!(meter(Limit::InodeXattrs, 99).xattrs(&set).is_err());
        let mut xattrs = meter(Limit::Xattrs, 250);
        assert!(xattrs.xattrs(&set).is_ok() && xattrs.xattrs(&set).is_ok());
        assert!(xattrs.xattrs(&set).is_err());

        let mut bytes = meter(Limit::Bytes, u64::MAX - 1);
        assert!(bytes.file(u64::MAX - 2).is_ok() && bytes.file(1).is_ok());
        assert!(bytes.file(u64::MAX).is_err(), "nothing wraps");
    }

    #[test]
    fn short_inputs_may_hold_more_data_unless_a_ratio_is_named() {
        assert_eq!(Limits::default().data_len_max(1000), RATIO_FLOOR);
        assert_eq!(Limits::default().data_len_max(1 << 30), 40_000 << 30);
        let named = Limits::default().allow(Limit::Ratio, 10);
        assert!(named.check_data("image", 10_000, 1000).is_ok());
        let error = named.check_data("image", 10_001, 1000).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("at least 10001 bytes of file data, 10 for each of its own 1000, at most 10000"),
            "{error}"
        );
        assert!(Limits::none().check_data("image", u64::MAX - 1, 1).is_ok());
    }
}
