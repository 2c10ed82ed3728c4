//! Recovery data: repairs lost blocks of an image exactly.
//!
//! docs/formats/recovery.md specifies the file. One code covers all blocks, so any blocks can be
//! repaired, as many as there are intact recovery blocks. Checksums identify lost blocks. They do
//! not protect against changes of both image and recovery file; a signature does.

mod code;
mod copy;
mod index;
mod page;
mod params;
mod protect;
mod repair;

pub use copy::{repair_copy, survey_beside};
pub use index::RecoveryIndex;
pub use params::RecoveryParams;
pub use protect::protect;
pub use repair::{RecoveryState, repair, survey};
