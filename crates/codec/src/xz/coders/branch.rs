//! Tests for code that a branch filter could convert, so that text, pictures, and other data are
//! not compressed once more for every filter.
//!
//! Each test is a necessary condition of the filter in liblzma (xz/src/liblzma/simple): it may
//! return true if the filter converts nothing, never false if it converts something.

use crate::BranchFilter;

/// False only if `filter` leaves all of `src` unchanged.
pub(super) fn may_convert(filter: BranchFilter, src: &[u8]) -> bool {
    match filter {
        BranchFilter::X86 => any_call(src),
        // IA-64 bundles have no byte that identifies branches; every block is tried.
        BranchFilter::Ia64 => src.len() >= 16,
        BranchFilter::PowerPc => any_word(src, |[a, _, _, d]| a >> 2 == 0x12 && d & 3 == 1),
        BranchFilter::Arm => any_word(src, |[_, _, _, d]| d == 0xEB),
        BranchFilter::Sparc => {
            any_word(src, |[a, b, _, _]| (a == 0x40 && b & 0xC0 == 0) || (a == 0x7F && b & 0xC0 == 0xC0))
        }
        // BL, or ADRP.
        BranchFilter::Arm64 => any_word(src, |[_, _, _, d]| d >> 2 == 0x25 || d & 0x9F == 0x90),
        BranchFilter::ArmThumb => any_half_pair(src, |[_, b, _, d]| b & 0xF8 == 0xF0 && d & 0xF8 == 0xF8),
        // JAL, or AUIPC.
        BranchFilter::RiscV => any_half_pair(src, |[a, _, _, _]| a == 0xEF || a & 0x7F == 0x17),
    }
}

/// True if there is a CALL or JMP with a near displacement: opcode E8 or E9, and a displacement
/// whose high byte is 00 or FF.
fn any_call(src: &[u8]) -> bool {
    src.windows(5).any(|w| w[0] & 0xFE == 0xE8 && (w[4] == 0 || w[4] == 0xFF))
}

fn any_word(src: &[u8], test: impl Fn([u8; 4]) -> bool) -> bool {
    src.as_chunks().0.iter().any(|&word| test(word))
}

/// Tests four bytes at every even offset.
fn any_half_pair(src: &[u8], test: impl Fn([u8; 4]) -> bool) -> bool {
    src.windows(4).step_by(2).any(|w| test([w[0], w[1], w[2], w[3]]))
}
