//! x86: CALL and JMP with a 32-bit distance, at any offset.

/// Index of the deciding byte of the distance, by the opcodes among the three preceding bytes.
const DECIDING: [u32; 5] = [0, 1, 2, 2, 3];

/// An opcode is only converted if its distance's high byte is 00 or FF; opcodes less than five
/// bytes apart make both doubtful, and `near` records them: bits 1 to 3 for an opcode that many
/// bytes before, bits 5 to 7 for those whose high byte fitted.
pub(super) fn undo(start: u32, data: &mut [u8]) {
    let mut near = 0u32;
    let mut last = None::<usize>;
    let mut at = 0;
    while let Some(found) = next_opcode(data, at) {
        at = found;
        let Some([_, distance @ ..]) = data.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<5>) else {
            break;
        };
        near = match last.map(|last| at - last) {
            Some(gap @ 0..=5) => (0..gap).fold(near, |near, _| (near & 0x77) << 1),
            _ => 0,
        };
        last = Some(at);
        let fits = is_sign(distance[3]);
        if !fits || near >> 1 > 4 || near >> 1 == 3 {
            near |= if fits { 0x11 } else { 1 };
            at += 1;
            continue;
        }
        let address = start.wrapping_add(at as u32).wrapping_add(5);
        let mut value = u32::from_le_bytes(*distance).wrapping_sub(address);
        if near != 0 {
            let bits = 32 - DECIDING[(near >> 1) as usize] * 8;
            // The byte that decided about the previous opcode must not look like a sign, as it did
            // not before; one repetition is enough.
            if is_sign((value >> (bits - 8)) as u8) {
                value = (value ^ (u32::MAX >> (32 - bits))).wrapping_sub(address);
            }
        }
        let sign = if value >> 24 & 1 == 1 { 0xFF } else { 0 };
        *distance = (value & 0x00FF_FFFF | sign << 24).to_le_bytes();
        at += 5;
        near = 0;
    }
}

fn is_sign(byte: u8) -> bool {
    byte == 0 || byte == 0xFF
}

fn next_opcode(data: &[u8], at: usize) -> Option<usize> {
    let ahead = data.get(at..)?.iter().position(|byte| byte & 0xFE == 0xE8)?;
    Some(at + ahead)
}
