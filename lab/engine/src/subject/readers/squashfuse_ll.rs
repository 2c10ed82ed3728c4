//! squashfuse_ll, the version of squashfuse that serves in up to ten threads.

use super::squashfuse::{MOUNTS, WANTED};
use super::{Reader, find_fuse};
use crate::programs::Wanted;
use crate::results::Missing;

pub(super) fn find() -> Result<Reader, Missing> {
    find_fuse(Wanted { name: "squashfuse_ll", ..WANTED }, MOUNTS)
}
