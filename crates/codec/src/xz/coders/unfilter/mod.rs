//! Decoding of the filters of .xz: branch filters, which make the targets of branches absolute, and
//! the delta filter.
//!
//! All work in place on a whole block. The format defines what each converts.

mod riscv;
mod words;
mod x86;

use crate::BranchFilter;

/// Number of bytes after a position that can affect the result of three filters: less than 16 for
/// each.
pub(super) const LOOK_AHEAD: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filter {
    /// Every byte was stored minus the one `distance` bytes before.
    Delta { distance: usize },
    /// `start` is the address of the first byte of the block.
    Branch { filter: BranchFilter, start: u32 },
}

impl Filter {
    /// `None` for invalid ids and properties.
    pub(super) fn new(id: u64, properties: &[u8]) -> Option<Filter> {
        const DELTA: u64 = 3;
        if id == DELTA {
            let &[distance] = properties else { return None };
            return Some(Filter::Delta { distance: usize::from(distance) + 1 });
        }
        let (filter, alignment) = match id {
            4 => (BranchFilter::X86, 1),
            5 => (BranchFilter::PowerPc, 4),
            6 => (BranchFilter::Ia64, 16),
            7 => (BranchFilter::Arm, 4),
            8 => (BranchFilter::ArmThumb, 2),
            9 => (BranchFilter::Sparc, 4),
            10 => (BranchFilter::Arm64, 4),
            11 => (BranchFilter::RiscV, 2),
            _ => return None,
        };
        let start = match *properties {
            [] => 0,
            [a, b, c, d] => u32::from_le_bytes([a, b, c, d]),
            _ => return None,
        };
        start.is_multiple_of(alignment).then_some(Filter::Branch { filter, start })
    }

    fn undo(self, data: &mut [u8]) {
        match self {
            Filter::Delta { distance } => {
                for at in distance..data.len() {
                    data[at] = data[at].wrapping_add(data[at - distance]);
                }
            }
            Filter::Branch { filter, start } => match filter {
                BranchFilter::X86 => x86::undo(start, data),
                BranchFilter::PowerPc => words::powerpc(start, data),
                BranchFilter::Ia64 => words::ia64(start, data),
                BranchFilter::Arm => words::arm(start, data),
                BranchFilter::ArmThumb => words::arm_thumb(start, data),
                BranchFilter::Sparc => words::sparc(start, data),
                BranchFilter::Arm64 => words::arm64(start, data),
                BranchFilter::RiscV => riscv::undo(start, data),
            },
        }
    }
}

/// Undoes all of `filters`, the last applied first.
pub(super) fn undo(filters: &[Option<Filter>], data: &mut [u8]) {
    for filter in filters.iter().rev().flatten() {
        filter.undo(data);
    }
}
