//! Division of blocks, so that each has separate tables.
//!
//! libzstd divides blocks by the savings of earlier ones, which it does not know when it only
//! parses. Here blocks are halved as long as both halves together are expected to cost less.

use super::cost::Costs;
use super::ffi::{BLOCK_END, Sequence, plain_len};

/// Shorter blocks are not divided: their tables would cost too much.
const SEQUENCES_MIN: usize = 300;

/// Appends the sequences of one block to `divided`, with additional ends of blocks where they pay.
pub(super) fn divide(block: &[Sequence], plain: &[u8], literals_stored: bool, divided: &mut Vec<Sequence>) {
    let whole = Costs::new(block, plain, literals_stored).total();
    halve(block, plain, whole, literals_stored, divided);
}

/// `whole` is the expected cost of the undivided block.
fn halve(block: &[Sequence], plain: &[u8], whole: u64, literals_stored: bool, divided: &mut Vec<Sequence>) {
    if block.len() >= 2 * SEQUENCES_MIN {
        let (head, tail) = block.split_at(block.len() / 2);
        let (head_plain, tail_plain) = plain.split_at(head.iter().map(plain_len).sum());
        let head_cost = Costs::new(head, head_plain, literals_stored).total();
        let tail_cost = Costs::new(tail, tail_plain, literals_stored).total();
        if head_cost + tail_cost < whole {
            halve(head, head_plain, head_cost, literals_stored, divided);
            divided.push(BLOCK_END);
            halve(tail, tail_plain, tail_cost, literals_stored, divided);
            return;
        }
    }
    divided.extend_from_slice(block);
}
