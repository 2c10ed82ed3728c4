//! LZO1X encoder and decoder, written from the description of the format in the Linux kernel
//! (Documentation/staging/lzo.rst).
//!
//! Owns the format; every stream is of version 0, raw, without header, and ends with the end
//! marker. An encoder yields the same bytes for the same input regardless of earlier inputs.
//! Containers provide the decoded length; version 1 (LZO-RLE) is neither read nor written.

#![forbid(unsafe_code)]

mod chain;
mod coders;
mod decode;
mod emit;
mod error;
mod finder;
mod format;
mod greedy;
mod lazy;
mod optimal;
mod sectors;
mod settings;
#[cfg(test)]
mod tests;
mod tree;

use error::LzoError;
pub(crate) use settings::LZO;
pub use settings::{LzoSettings, LzoVariant};

use crate::words::zeroed;
use chain::Chain;
use coders::Decompressor;
use lazy::Lazy;
use optimal::Optimal;
use tree::Tree;

/// An LZO1X encoder with scratch memory that is reused for each block.
pub struct Compressor {
    method: Method,
}

/// Methods of finding and choosing matches; the fast ones with the logarithm of their table's
/// length.
enum Method {
    Fast12(Box<[u16; 1 << 12]>),
    Fast13(Box<[u16; 1 << 13]>),
    Fast14(Box<[u16; 1 << 14]>),
    Short14(Box<[u16; 1 << 14]>),
    Lazy(Lazy),
    OptimalChain(Box<Optimal<Chain>>),
    OptimalTree(Box<Optimal<Tree>>),
}

impl Compressor {
    /// Returns an encoder of the given variant; `level` matters only to [`LzoVariant::X999`], and
    /// is clamped to 1 to 9.
    ///
    /// The fast variants differ in the size of their table of positions, which differs from that of
    /// other encoders with these names; [`LzoVariant::X1_15`] also searches shorter matches than
    /// the others. The levels differ in the choice of matches, 1 to 5 with a search at the next
    /// position, 6 to 9 for the shortest stream, and in the number of positions compared.
    pub fn new(variant: LzoVariant, level: u8) -> Self {
        let method = match variant {
            LzoVariant::X1_11 => Method::Fast12(zeroed()),
            LzoVariant::X1_12 => Method::Fast13(zeroed()),
            LzoVariant::X1 => Method::Fast14(zeroed()),
            LzoVariant::X1_15 => Method::Short14(zeroed()),
            LzoVariant::X999 => dense_method(level),
        };
        Compressor { method }
    }

    /// Encodes `src` as one stream at the start of `dst` and returns its length in bytes, `None` if
    /// `dst` is too small (its contents are then undefined).
    pub fn compress(&mut self, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        match &mut self.method {
            Method::Fast12(table) => greedy::compress::<_, 5>(table, src, dst),
            Method::Fast13(table) => greedy::compress::<_, 5>(table, src, dst),
            Method::Fast14(table) => greedy::compress::<_, 5>(table, src, dst),
            Method::Short14(table) => greedy::compress::<_, 4>(table, src, dst),
            Method::Lazy(lazy) => lazy.compress(src, dst),
            Method::OptimalChain(optimal) => optimal.compress(src, dst),
            Method::OptimalTree(optimal) => optimal.compress(src, dst),
        }
    }
}

/// The levels: length of a match that ends the search, positions to compare, and for the lazy ones
/// the sufficient saving.
fn dense_method(level: u8) -> Method {
    let lazy = |nice_len, depth_max, good_enough| Method::Lazy(Lazy::new(nice_len, depth_max, good_enough));
    let chain = |nice_len, depth| Method::OptimalChain(Box::new(Optimal::new(nice_len, Chain::new(depth))));
    let tree = |nice_len, depth| Method::OptimalTree(Box::new(Optimal::new(nice_len, Tree::new(depth))));
    match level {
        0 | 1 => lazy(16, 2, 0),
        2 => lazy(32, 4, 0),
        3 => lazy(32, 4, 8),
        4 => lazy(64, 8, 16),
        5 => lazy(128, 40, 64),
        6 => chain(16, 8),
        7 => chain(32, 9),
        8 => tree(192, 128),
        _ => tree(512, 512),
    }
}
