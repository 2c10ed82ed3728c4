//! RISC-V: JAL, and AUIPC with the instruction that adds the low bits.
//!
//! The encoder writes targets in big-endian order, and pairs with AUIPC as one whose register is
//! x2, which compilers do not use there. Pairs that already look so were converted the other way,
//! and are converted back.

/// Instructions are at even offsets; none begins in the last 8 bytes.
pub(super) fn undo(start: u32, data: &mut [u8]) {
    let mut at = 0;
    while let Some(pair) = data.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<8>) {
        let address = start.wrapping_add(at as u32);
        at += match pair[0] {
            0xEF => jal(address, pair),
            opcode if opcode & 0x7F == 0x17 => auipc(address, pair),
            _ => 2,
        };
    }
}

/// Returns the number of bytes processed.
fn jal(address: u32, pair: &mut [u8; 8]) -> usize {
    let [_, a, b, c, ..] = pair.map(u32::from);
    // Return addresses are in x1 or x5.
    if a & 0x0D != 0 {
        return 2;
    }
    let target = (a & 0xF0) << 13 | b << 9 | c << 1;
    let distance = target.wrapping_sub(address);
    pair[1] = (a & 0x0F | distance >> 8 & 0xF0) as u8;
    pair[2] = (distance >> 16 & 0x0F | distance >> 7 & 0x10 | distance << 4 & 0xE0) as u8;
    pair[3] = (distance >> 4 & 0x7F | distance >> 13 & 0x80) as u8;
    4
}

/// Returns the number of bytes processed.
fn auipc(address: u32, pair: &mut [u8; 8]) -> usize {
    let [a, b, c, d, e, f, g, h] = *pair;
    let first = u32::from_le_bytes([a, b, c, d]);
    let (first, second) = if first & 0xE80 != 0 {
        // A register other than x0 and x2: a pair converted the other way, if a pair at all.
        let second = u32::from_le_bytes([e, f, g, h]);
        if (first << 8 ^ second.wrapping_sub(3)) & 0x000F_8003 != 0 {
            return 6;
        }
        (0x17 | 2 << 7 | second << 12, (first & 0xFFFF_F000).wrapping_add(second >> 20))
    } else {
        let register = first >> 27;
        if first.wrapping_sub(0x3117) << 18 >= register & 0x1D {
            return 4;
        }
        let distance = u32::from_be_bytes([e, f, g, h]).wrapping_sub(address);
        // The low 12 bits are added with a sign.
        let high = distance.wrapping_add(0x800) & 0xFFFF_F000;
        (0x17 | register << 7 | high, first >> 12 | distance << 20)
    };
    pair[..4].copy_from_slice(&first.to_le_bytes());
    pair[4..].copy_from_slice(&second.to_le_bytes());
    8
}
