//! XZ: one .xz stream per block with CRC32 check, LZMA2 and at most one branch filter before it.
//!
//! These are the streams that the kernel's decoder takes (Documentation/staging/xz.rst). Sizes are
//! left out of the block header, where the format allows it: the index states them anyway, and 4 to
//! 8 bytes per block are saved.

#[cfg(feature = "xz")]
mod coders;
#[cfg(not(feature = "xz"))]
crate::coders::coders!(XzSettings; decoder);
mod settings;

use coders::decoder;
pub(crate) use settings::XZ;
pub use settings::XzSettings;
