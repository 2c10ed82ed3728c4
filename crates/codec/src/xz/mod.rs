//! XZ: one .xz stream per block with CRC32 check, LZMA2, and at most one branch filter before it.
//!
//! The kernel's decoder accepts these streams (Documentation/staging/xz.rst). Sizes are omitted
//! from the block header, as the format permits: the index states them anyway, which saves 4 to 8
//! bytes per block.

#[cfg(feature = "xz")]
mod coders;
#[cfg(not(feature = "xz"))]
crate::coders::coders!(XzSettings; decoder);
mod settings;

use crate::Algorithm;
use crate::codec::{Codec, Decoding};
use coders::decoder;
pub use settings::XzSettings;

pub(crate) static XZ: Codec = Codec {
    name: "xz",
    algorithms: &[Algorithm::Xz],
    levels: Some(0..=9),
    default_level: Some(6),
    options: "extreme, dict=SIZE|PERCENT%, bcj=auto|x86+powerpc+ia64+arm+armthumb+sparc+arm64+riscv",
    description: "LZMA2; smallest images, slowest to read",
    for_size: "xz:9,extreme,bcj=auto",
    for_build: "xz:1",
    decoding: &[Decoding::new(Algorithm::Xz, decoder)],
};
