//! Access lists of members: what becomes of their modes and attributes, and which lists could not
//! be kept.

use super::acl::{AccessList, Dropped};
use super::ids::Ids;
use super::input::Input;
use super::pax::Records;
use packfs_core::{ImagePath, Meta, Xattrs};

/// Turns access lists into attributes, and remembers for one warning what was dropped.
#[derive(Default)]
pub(super) struct Lists {
    ids: Ids,
    dropped: u64,
    /// The first that was dropped, as part of a message.
    first: Option<String>,
}

impl Lists {
    /// Adds a member's lists to its attributes. The bits of its mode become those of the list, as
    /// the kernel has it: the mask is the group's.
    pub(super) fn apply(
        &mut self,
        records: &Records,
        path: &ImagePath,
        meta: &mut Meta,
        xattrs: &mut Xattrs,
    ) {
        if let Some(text) = &records.access_list {
            match AccessList::read(text, &self.ids) {
                Ok(list) => {
                    meta.mode = meta.mode & !0o777 | list.mode();
                    if !list.is_plain() {
                        xattrs.insert(b"system.posix_acl_access".to_vec(), list.encoded());
                    }
                }
                Err(dropped) => {
                    // Without the list, the mask in the mode would give the group what others were
                    // meant to have.
                    if let Some(group) = dropped.group {
                        meta.mode &= !0o070 | group << 3;
                    }
                    self.drop(path, &dropped);
                }
            }
        }
        if let Some(text) = &records.default_list {
            match AccessList::read(text, &self.ids) {
                Ok(list) => {
                    xattrs.insert(b"system.posix_acl_default".to_vec(), list.encoded());
                }
                Err(dropped) => self.drop(path, &dropped),
            }
        }
    }

    fn drop(&mut self, path: &ImagePath, dropped: &Dropped) {
        self.dropped += 1;
        self.first.get_or_insert_with(|| format!("\"{path}\": {}", dropped.why));
    }

    /// Says how many lists were dropped, and why the first was.
    pub(super) fn warn(&self, input: &Input<'_>) {
        let Some(first) = &self.first else { return };
        let rest = match self.dropped - 1 {
            0 => String::new(),
            rest => format!(" (and {rest} more)"),
        };
        input.warn(&format!("an access list in {} is dropped: {first}{rest}", input.name()));
    }
}
