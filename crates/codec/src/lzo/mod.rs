//! LZO1X, written from the description of its format in the kernel's `Documentation/staging/lzo.rst`.
//!
//! One decoder for all; fast encoders that take the first match they find, and a dense one that searches for the shortest
//! way to say a block. Every stream is of bitstream version 0, which every reader of SquashFS knows. The reference
//! implementation is under the GPL and no part of this.

mod chain;
mod decode;
mod emit;
mod error;
mod format;
mod greedy;
mod optimal;
#[cfg(test)]
mod tests;
mod words;

pub use decode::decompress;
pub use error::LzoError;

use chain::Chain;
use optimal::Optimal;
use packfs_core::codec::LzoVariant;

/// Effort of the dense encoder by level, from 1: the length from which a match is taken as it is, and how many places are
/// compared for each search.
const EFFORTS: [(usize, usize); 9] =
    [(8, 2), (16, 4), (24, 6), (32, 8), (48, 12), (48, 16), (64, 24), (96, 40), (256, 128)];

/// An encoder with its scratch, used again for every block.
pub struct Compressor(Encoder);

enum Encoder {
    X1_11(Box<[u16; 1 << 11]>),
    X1_12(Box<[u16; 1 << 12]>),
    X1(Box<[u16; 1 << 14]>),
    X1_15(Box<[u16; 1 << 15]>),
    X999(Box<Optimal>),
}

impl Compressor {
    /// Makes an encoder; `level`, from 1 to 9, counts for [`LzoVariant::X999`] only, others are as the nearest of these.
    pub fn new(variant: LzoVariant, level: u8) -> Self {
        Compressor(match variant {
            LzoVariant::X1_11 => Encoder::X1_11(Box::new([0; 1 << 11])),
            LzoVariant::X1_12 => Encoder::X1_12(Box::new([0; 1 << 12])),
            LzoVariant::X1 => Encoder::X1(Box::new([0; 1 << 14])),
            LzoVariant::X1_15 => Encoder::X1_15(Box::new([0; 1 << 15])),
            LzoVariant::X999 => {
                let (nice_len, depth_max) = EFFORTS[usize::from(level.clamp(1, 9)) - 1];
                Encoder::X999(Box::new(Optimal::new(nice_len, Chain::new(depth_max))))
            }
        })
    }

    /// Compresses a block; `None` if the result does not fit into `dst`.
    pub fn compress(&mut self, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        match &mut self.0 {
            Encoder::X1_11(table) => greedy::compress(table, src, dst),
            Encoder::X1_12(table) => greedy::compress(table, src, dst),
            Encoder::X1(table) => greedy::compress(table, src, dst),
            Encoder::X1_15(table) => greedy::compress(table, src, dst),
            Encoder::X999(optimal) => optimal.compress(src, dst),
        }
    }
}
