//! Recovery data: an image of which some blocks are lost is mended byte for byte.
//!
//! docs/formats/recovery.md tells the file. One code spans all blocks, so it does not matter which
//! are lost, in one burst or here and there: as many as there are good blocks of recovery data can
//! be mended. Checksums tell which blocks are lost; they are no proof against somebody who changes
//! image and recovery file, which a signature is.

mod code;
mod copy;
mod index;
mod page;
mod params;
mod protect;
mod repair;

pub use copy::{mend_copy, survey_beside};
pub use index::RecoveryIndex;
pub use params::RecoveryParams;
pub use protect::protect;
pub use repair::{RecoveryState, mend, survey};
