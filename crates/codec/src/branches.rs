//! Branch filters, and the kind of code in a block.

/// Branch-call-jump filters of XZ, in the order of the SquashFS option bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BranchFilter {
    /// x86 and x86-64.
    X86,
    /// Big-endian PowerPC.
    PowerPc,
    /// Itanium.
    Ia64,
    /// ARM, 32-bit instructions.
    Arm,
    /// ARM Thumb.
    ArmThumb,
    /// SPARC.
    Sparc,
    /// AArch64.
    Arm64,
    /// RISC-V.
    RiscV,
}

impl BranchFilter {
    /// Every filter, in the order of the SquashFS option bits (bit 0 is x86).
    pub const ALL: [BranchFilter; 8] = [
        BranchFilter::X86,
        BranchFilter::PowerPc,
        BranchFilter::Ia64,
        BranchFilter::Arm,
        BranchFilter::ArmThumb,
        BranchFilter::Sparc,
        BranchFilter::Arm64,
        BranchFilter::RiscV,
    ];

    /// Filters that every kernel with XZ decodes; Linux 6.12 added the others.
    pub const OLD: &'static [BranchFilter] = BranchFilter::ALL.split_at(6).0;

    /// The name users type: `x86`, `powerpc`, `ia64`, `arm`, `armthumb`, `sparc`, `arm64`, `riscv`.
    pub fn name(self) -> &'static str {
        match self {
            BranchFilter::X86 => "x86",
            BranchFilter::PowerPc => "powerpc",
            BranchFilter::Ia64 => "ia64",
            BranchFilter::Arm => "arm",
            BranchFilter::ArmThumb => "armthumb",
            BranchFilter::Sparc => "sparc",
            BranchFilter::Arm64 => "arm64",
            BranchFilter::RiscV => "riscv",
        }
    }
}

/// Branch filters that may suit a block, according to its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchSet {
    bits: u8,
    /// Set if the contents are partly unknown.
    unknown: bool,
}

impl BranchSet {
    /// Data that is not code.
    pub const NONE: BranchSet = BranchSet { bits: 0, unknown: false };
    /// Data that may be code of any machine.
    pub const UNKNOWN: BranchSet = BranchSet { bits: 0, unknown: true };

    /// Returns the code that these filters are meant for.
    pub fn of(filters: &[BranchFilter]) -> BranchSet {
        BranchSet { bits: filters.iter().fold(0, |bits, filter| bits | 1 << *filter as u8), unknown: false }
    }

    /// Returns the union of both kinds.
    #[must_use]
    pub fn union(self, other: BranchSet) -> BranchSet {
        BranchSet { bits: self.bits | other.bits, unknown: self.unknown || other.unknown }
    }

    /// True if a filter, one of `chosen_count` in the settings, is worth trying: on code that it is
    /// meant for; on unknown data only if it is the only one, as each trial costs as much as
    /// compressing.
    pub fn suits(self, filter: BranchFilter, chosen_count: usize) -> bool {
        self.bits & 1 << filter as u8 != 0 || self.unknown && chosen_count == 1
    }
}
