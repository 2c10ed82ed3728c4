//! Properties of any block.

use crate::Breach;
use packfs_codec::{Algorithm, Decoder, decoder};

/// Bytes around the room for what is decoded.
const GUARD: usize = 64;
const GUARD_BYTE: u8 = 0x5a;

/// Every decoder answers or refuses, writes nothing outside of its room, does the same twice, and
/// decodes the beginning of what it decodes whole as the same bytes. The first byte picks the
/// algorithm, the next two the room.
///
/// # Errors
/// A [`Breach`].
pub fn decode(input: &[u8]) -> Result<(), Breach> {
    let [which, low, high, block @ ..] = input else { return Ok(()) };
    let algorithm = Algorithm::ALL[usize::from(*which) % Algorithm::ALL.len()];
    let room = usize::from(*low) | usize::from(*high) << 8;
    let mut decoder = decoder(algorithm);
    let whole = decoded(&mut *decoder, block, room, algorithm)?;
    if decoded(&mut *decoder, block, room, algorithm)? != whole {
        return Err(Breach::Decoder(format!("{algorithm}: another outcome the second time")));
    }
    let parts = [0, 1, room / 3, room.saturating_sub(1), room];
    for part in parts {
        let mut out = vec![GUARD_BYTE; part + 2 * GUARD];
        let begun = decoder.decompress_prefix(block, &mut out[GUARD..GUARD + part]);
        guarded(&out, part, algorithm)?;
        let (Some(whole), len) = (&whole, part) else { continue };
        let wanted = len.min(whole.len());
        // A block that is whole has a beginning of every length.
        match begun {
            Ok(len) if len == wanted && out[GUARD..GUARD + len] == whole[..len] => {}
            Err(_) if algorithm == Algorithm::MicroLzma && part > whole.len() => {}
            // Whole streams are decoded by libdeflate, which takes the codes that DEFLATE leaves
            // unused for their neighbours; beginnings by zlib-rs, which refuses them as kernels do.
            Err(_) if matches!(algorithm, Algorithm::Zlib | Algorithm::Deflate) => {}
            other => {
                return Err(Breach::Decoder(format!(
                    "{algorithm}: {} bytes when whole, but of the first {part}: {other:?}",
                    whole.len()
                )));
            }
        }
    }
    Ok(())
}

/// Every loop of the LZMA decoder, the fast one with its unchecked steps among them, makes the same
/// of any stream. The first byte picks lc, lp, pb and the dictionary, the next two the room.
///
/// # Errors
/// A [`Breach`].
pub fn lzma(input: &[u8]) -> Result<(), Breach> {
    let [which, low, high, packed @ ..] = input else { return Ok(()) };
    let room = usize::from(*low) | usize::from(*high) << 8;
    // Most streams are made with the usual figures; with others they are noise.
    let byte = if which % 3 == 0 { which % 225 } else { 0x5D };
    let dict_len = [usize::MAX, 4096, 100][usize::from(which / 3 % 3)];
    // A stream begins with a zero, in whose place EROFS has its figures.
    let mut packed = packed.to_vec();
    packed.first_mut().into_iter().for_each(|first| *first = 0);
    if packfs_codec::loops_agree(&packed, byte, dict_len, room) {
        Ok(())
    } else {
        Err(Breach::Decoder(format!("lzma: its loops disagree, with {byte:#x}, {dict_len} and {room}")))
    }
}

fn decoded(
    decoder: &mut dyn Decoder,
    block: &[u8],
    room: usize,
    algorithm: Algorithm,
) -> Result<Option<Vec<u8>>, Breach> {
    let mut out = vec![GUARD_BYTE; room + 2 * GUARD];
    let len = decoder.decompress(block, &mut out[GUARD..GUARD + room]);
    guarded(&out, room, algorithm)?;
    match len {
        Ok(len) if len > room => {
            Err(Breach::Decoder(format!("{algorithm}: {len} bytes in a room of {room}")))
        }
        Ok(len) => Ok(Some(out[GUARD..GUARD + len].to_vec())),
        Err(_) => Ok(None),
    }
}

fn guarded(out: &[u8], room: usize, algorithm: Algorithm) -> Result<(), Breach> {
    let is_whole = out[..GUARD].iter().chain(&out[GUARD + room..]).all(|&byte| byte == GUARD_BYTE);
    if is_whole { Ok(()) } else { Err(Breach::Decoder(format!("{algorithm}: wrote outside of its room"))) }
}
