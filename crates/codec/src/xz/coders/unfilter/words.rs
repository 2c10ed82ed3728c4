//! Processors with instructions aligned to their length: PowerPC, IA-64, ARM, Thumb, SPARC, and
//! AArch64.

/// Returns each whole word of `N` bytes with its address.
fn words<const N: usize>(start: u32, data: &mut [u8]) -> impl Iterator<Item = (u32, &mut [u8; N])> {
    let addresses = (0u32..).map(move |index| start.wrapping_add(index.wrapping_mul(N as u32)));
    addresses.zip(data.as_chunks_mut().0)
}

/// `bl` with the absolute bit clear: opcode 18, 24 bits of distance in words.
pub(super) fn powerpc(start: u32, data: &mut [u8]) {
    for (address, word) in words(start, data) {
        let instruction = u32::from_be_bytes(*word);
        if instruction & 0xFC00_0003 == 0x4800_0001 {
            let target = instruction & 0x03FF_FFFC;
            let distance = target.wrapping_sub(address) & 0x03FF_FFFC;
            *word = (0x4800_0001 | distance).to_be_bytes();
        }
    }
}

/// `bl` that is always executed: 24 bits of distance in words, relative to 8 bytes further on.
pub(super) fn arm(start: u32, data: &mut [u8]) {
    for (address, word) in words(start, data) {
        let instruction = u32::from_le_bytes(*word);
        if instruction >> 24 == 0xEB {
            let distance = (instruction << 2).wrapping_sub(address.wrapping_add(8)) >> 2;
            *word = (0xEB00_0000 | distance & 0x00FF_FFFF).to_le_bytes();
        }
    }
}

/// `bl` in two halves: 11 high and 11 low bits of distance in half words, relative to 4 bytes
/// further on.
pub(super) fn arm_thumb(start: u32, data: &mut [u8]) {
    let mut at = 0;
    while let Some(pair) = data.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<4>) {
        let [a, b, c, d] = pair.map(u32::from);
        if b & 0xF8 != 0xF0 || d & 0xF8 != 0xF8 {
            at += 2;
            continue;
        }
        let target = (b & 7) << 19 | a << 11 | (d & 7) << 8 | c;
        let address = start.wrapping_add(at as u32).wrapping_add(4);
        let distance = (target << 1).wrapping_sub(address) >> 1;
        *pair =
            [distance >> 11, 0xF0 | distance >> 19 & 7, distance, 0xF8 | distance >> 8 & 7].map(|x| x as u8);
        at += 4;
    }
}

/// `call`: 30 bits of distance in words, of which the upper 8 are all equal.
pub(super) fn sparc(start: u32, data: &mut [u8]) {
    for (address, word) in words(start, data) {
        let instruction = u32::from_be_bytes(*word);
        if matches!(instruction >> 22, 0x100 | 0x1FF) {
            let distance = (instruction << 2).wrapping_sub(address) >> 2;
            // The sign is bit 22.
            let sign = 0u32.wrapping_sub(distance >> 22 & 1);
            *word = (0x4000_0000 | sign << 22 & 0x3FFF_FFFF | distance & 0x003F_FFFF).to_be_bytes();
        }
    }
}

/// `bl`: 26 bits of distance in words. `adrp`: 21 bits of distance in pages, if it is within 512
/// MiB.
pub(super) fn arm64(start: u32, data: &mut [u8]) {
    for (address, word) in words(start, data) {
        let instruction = u32::from_le_bytes(*word);
        if instruction >> 26 == 0x25 {
            let distance = instruction.wrapping_sub(address >> 2) & 0x03FF_FFFF;
            *word = (0x9400_0000 | distance).to_le_bytes();
        } else if instruction & 0x9F00_0000 == 0x9000_0000 {
            let target = instruction >> 29 & 3 | instruction >> 3 & 0x001F_FFFC;
            if target.wrapping_add(0x0002_0000) & 0x001C_0000 != 0 {
                continue;
            }
            let distance = target.wrapping_sub(address >> 12);
            let sign = 0u32.wrapping_sub(distance & 0x0002_0000) & 0x00E0_0000;
            let fields = (distance & 3) << 29 | (distance & 0x0003_FFFC) << 3 | sign;
            *word = (instruction & 0x9000_001F | fields).to_le_bytes();
        }
    }
}

/// `br.call` in bundles of 128 bits: a template of 5, and three instructions of 41.
pub(super) fn ia64(start: u32, data: &mut [u8]) {
    /// By template, the instructions that may be branches: bit 0 is the first.
    const BRANCHES: [u8; 32] =
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 4, 6, 6, 0, 0, 7, 7, 4, 4, 0, 0, 4, 4, 0, 0];
    /// Bits of an instruction's distance: 20 bits in bundles, and its sign.
    const DISTANCE: u128 = 0xF_FFFF << 13;
    const SIGN: u128 = 1 << 36;
    for (address, word) in words::<16>(start, data) {
        let mut bundle = u128::from_le_bytes(*word);
        let branches = BRANCHES[(bundle & 0x1F) as usize];
        if branches == 0 {
            continue;
        }
        for slot in (0..3).filter(|slot| branches >> slot & 1 == 1) {
            let shift = 5 + slot * 41;
            let instruction = bundle >> shift;
            if instruction >> 37 & 0xF != 5 || instruction >> 9 & 7 != 0 {
                continue;
            }
            let target = (instruction >> 13 & 0xF_FFFF) as u32 | ((instruction >> 36 & 1) as u32) << 20;
            let distance = u128::from((target << 4).wrapping_sub(address) >> 4);
            let fields = distance << 13 & DISTANCE | distance << (36 - 20) & SIGN;
            bundle = bundle & !((DISTANCE | SIGN) << shift) | fields << shift;
        }
        *word = bundle.to_le_bytes();
    }
}
