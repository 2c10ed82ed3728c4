//! Selection of the attributes that a digest covers.

/// Attributes covered in addition to names, types, contents, targets and device numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DigestFacts {
    /// Permissions; those of symbolic links never count, because Linux has none.
    pub mode: bool,
    /// Users and groups.
    pub owner: bool,
    /// Times, in whole seconds.
    pub mtime: bool,
    /// Fractions of seconds.
    pub nanos: bool,
    /// Extended attributes.
    pub xattrs: bool,
    /// Hard links.
    pub links: bool,
    /// Attributes of the root directory itself.
    pub root: bool,
}

/// The default: attributes that SquashFS, EROFS, tar archives and directories all support.
impl Default for DigestFacts {
    fn default() -> Self {
        DigestFacts {
            mode: true,
            owner: true,
            mtime: true,
            nanos: false,
            xattrs: true,
            links: true,
            root: true,
        }
    }
}

const NAMES: [&str; 7] = ["mode", "owner", "mtime", "nanos", "xattrs", "links", "root"];

impl DigestFacts {
    /// Only names, types, contents, targets and device numbers.
    pub const NONE: DigestFacts = DigestFacts {
        mode: false,
        owner: false,
        mtime: false,
        nanos: false,
        xattrs: false,
        links: false,
        root: false,
    };

    /// All attributes.
    pub const ALL: DigestFacts = DigestFacts {
        mode: true,
        owner: true,
        mtime: true,
        nanos: true,
        xattrs: true,
        links: true,
        root: true,
    };

    fn values(self) -> [bool; 7] {
        [self.mode, self.owner, self.mtime, self.nanos, self.xattrs, self.links, self.root]
    }

    /// Returns the attribute with this name.
    pub fn by_name(&mut self, name: &str) -> Option<&mut bool> {
        Some(match name {
            "mode" => &mut self.mode,
            "owner" => &mut self.owner,
            "mtime" => &mut self.mtime,
            "nanos" => &mut self.nanos,
            "xattrs" => &mut self.xattrs,
            "links" => &mut self.links,
            "root" => &mut self.root,
            _ => return None,
        })
    }

    /// Returns the names of all attributes, in the order written.
    pub fn names() -> &'static [&'static str] {
        &NAMES
    }

    /// Returns the names of the covered attributes, joined by `+`, or `none`.
    pub fn spelled(self) -> String {
        let names: Vec<&str> =
            NAMES.iter().zip(self.values()).filter(|(_, counts)| *counts).map(|(name, _)| *name).collect();
        if names.is_empty() { "none".into() } else { names.join("+") }
    }

    // Only the order of `spelled` is accepted, so that the text is unique.
    pub(crate) fn from_spelled(text: &str) -> Option<Self> {
        let mut facts = DigestFacts::NONE;
        if text != "none" {
            for name in text.split('+') {
                *facts.by_name(name)? = true;
            }
        }
        (facts.spelled() == text).then_some(facts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_of_facts_is_spelled_in_one_way() {
        for bits in 0..128_u32 {
            let mut facts = DigestFacts::NONE;
            for (index, name) in NAMES.iter().enumerate() {
                *facts.by_name(name).unwrap() = bits & (1 << index) != 0;
            }
            assert_eq!(DigestFacts::from_spelled(&facts.spelled()), Some(facts));
        }
        for bad in ["", "mode+", "owner+mode", "mode+mode", "none+mode", "size"] {
            assert_eq!(DigestFacts::from_spelled(bad), None, "{bad}");
        }
    }
}
