//! Machines without a list of system calls, such as those of 32 bits.

use crate::Sandbox;
use packfs_core::Result;

/// Returns the reason why calls are not restricted.
pub(crate) fn restrict(_: &Sandbox) -> Result<Option<String>> {
    Ok(Some("packfs has no list of calls for this machine".into()))
}
