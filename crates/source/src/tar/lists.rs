//! Access lists of members: applies them to modes and attributes, and counts those that cannot be
//! kept.

use super::acl::{AccessList, Dropped};
use super::ids::Ids;
use super::pax::Records;
use crate::archive::Told;
use crate::archive::input::Input;
use packfs_core::{ImagePath, Meta, Xattrs};

/// Dropped lists are counted for one warning.
#[derive(Default)]
pub(super) struct Lists {
    ids: Ids,
    dropped: Told,
}

impl Lists {
    /// The mode gets the list's permission bits, as in the kernel: the group's are the mask.
    pub(super) fn apply(
        &mut self,
        records: &Records,
        path: &ImagePath,
        meta: &mut Meta,
        xattrs: &mut Xattrs,
        input: &Input<'_>,
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
                    // Without the list, the mask in the mode would give the group permissions meant
                    // for others.
                    if let Some(group) = dropped.group {
                        meta.mode &= !0o070 | group << 3;
                    }
                    self.drop(path, &dropped, input);
                }
            }
        }
        if let Some(text) = &records.default_list {
            match AccessList::read(text, &self.ids) {
                Ok(list) => {
                    xattrs.insert(b"system.posix_acl_default".to_vec(), list.encoded());
                }
                Err(dropped) => self.drop(path, &dropped, input),
            }
        }
    }

    fn drop(&mut self, path: &ImagePath, dropped: &Dropped, input: &Input<'_>) {
        self.dropped
            .add(|| format!("dropped an access list in {}: \"{path}\": {}", input.name(), dropped.why));
    }

    pub(super) fn warn(&self, input: &Input<'_>) {
        self.dropped.warn(input.progress());
    }
}
