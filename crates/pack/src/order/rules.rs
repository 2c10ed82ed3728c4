//! Prices and limits of an order.

use super::kernel_cache::KERNEL_KEEPS;

#[derive(Clone, Copy)]
pub(super) struct Rules {
    pub block_len: u64,
    /// Bytes that the codec looks back.
    pub window_len: u64,
    /// Compressed bytes that a further decode of a block has to save.
    pub decode_price: u64,
    /// Compressed bytes that a move beside a distant file has to save.
    pub move_gain: u64,
    /// Most bytes of a copy that is stored again if the original is far away.
    pub again_max: u64,
    /// Most blocks of a stretch.
    pub stretch_max: u64,
}

impl Rules {
    pub(super) fn new(block_len: u64, window_len: u64) -> Self {
        let (decode_price, move_gain) = (block_len / 16, block_len / 36);
        let (again_max, stretch_max) = (block_len / 128, KERNEL_KEEPS as u64);
        Rules { block_len, window_len, decode_price, move_gain, again_max, stretch_max }
    }
}

pub(super) fn compressed_len(len: u64) -> u64 {
    len * 35 / 100
}
