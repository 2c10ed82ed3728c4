//! LZ4 block format, raw: no frame, no length, no checksum.

#[cfg(feature = "lz4")]
mod coders;
#[cfg(not(feature = "lz4"))]
crate::coders::coders!(Lz4Settings, Lz4HcSettings; decoder);
mod settings;

use coders::decoder;
pub(crate) use settings::{LZ4, LZ4HC};
pub use settings::{Lz4HcSettings, Lz4Settings};
