//! LZ4 block format, raw: no frame, no length, no checksum.

#[cfg(feature = "lz4")]
pub(crate) mod coders;
#[cfg(not(feature = "lz4"))]
crate::coders::coders!(Lz4Settings, Lz4HcSettings; decoder);
mod settings;

use crate::Algorithm;
use crate::codec::{Codec, Decoding};
use coders::decoder;
use settings::LEVEL_MAX;
pub use settings::{Lz4HcSettings, Lz4Settings};

pub(crate) static LZ4: Codec = Codec {
    name: "lz4",
    algorithms: &[Algorithm::Lz4],
    levels: None,
    default_level: None,
    options: "acceleration=1..65537",
    description: "LZ4, fast; packs and reads fastest of all",
    for_size: "lz4",
    for_build: "lz4",
    decoding: &[Decoding { has_fast_prefix: true, ..Decoding::new(Algorithm::Lz4, decoder) }],
};

pub(crate) static LZ4HC: Codec = Codec {
    name: "lz4hc",
    algorithms: &[Algorithm::Lz4],
    levels: Some(0..=12),
    default_level: Some(LEVEL_MAX as i32),
    options: "",
    description: "LZ4, high compression; reads fastest of all",
    for_size: "lz4hc:12",
    for_build: "lz4hc:3",
    decoding: &[],
};
