//! LZMA2: chunks of LZMA, or uncompressed, of up to 64 KiB; the first byte of each states what it
//! resets.

use crate::DecodeError;
use crate::lzma::decode::{Fault, Finish, Properties, RangeDecoder, State, Stop, Window, reach};
use crate::lzma::{DAMAGED, TOO_SHORT};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The end marker was read: lengths of the chunks and of their decoded data.
    Complete { src_len: usize, dst_len: usize },
    /// The destination is full, and only a prefix was requested.
    Full,
}

/// Decodes the chunks at the start of `src`. With `prefix`, stops as soon as `dst` is full.
pub(super) fn decode(
    state: &mut State,
    src: &[u8],
    dst: &mut [u8],
    dict_len: u32,
    prefix: bool,
) -> Result<End, DecodeError> {
    let dict_len = reach(dict_len);
    let mut at = 0;
    let mut dst_len = 0;
    let mut dict_start = 0;
    // `None` before a chunk states them after a reset of the dictionary, which must be first.
    let mut properties = None;
    let mut begun = false;
    loop {
        let control = *src.get(at).ok_or(TOO_SHORT)?;
        at += 1;
        if control == 0 {
            return Ok(End::Complete { src_len: at, dst_len });
        }
        if control == 1 || control >= 0xE0 {
            (dict_start, properties, begun) = (dst_len, None, true);
        }
        if !begun || (3..0x80).contains(&control) {
            return Err(DAMAGED);
        }
        let stored = control < 0x80;
        if stored {
            dst_len += copy_stored(src, &mut at, &mut dst[dst_len..], prefix)?;
            if prefix && dst_len == dst.len() {
                return Ok(End::Full);
            }
            continue;
        }
        let plain_len = (usize::from(control & 0x1F) << 16 | field(src, &mut at)?) + 1;
        let chunk_len = field(src, &mut at)? + 1;
        if control >= 0xC0 {
            let byte = *src.get(at).ok_or(TOO_SHORT)?;
            at += 1;
            properties = Some(Properties::new(byte).ok_or(DAMAGED)?);
        }
        let properties = properties.ok_or(DAMAGED)?;
        if control >= 0xA0 {
            state.reset(properties);
        }
        let room = dst.len() - dst_len;
        if plain_len > room && !prefix {
            return Err(DecodeError::TooLong);
        }
        let cut = prefix && plain_len >= room;
        let whole = src.len() - at >= chunk_len;
        let chunk = &src[at..src.len().min(at + chunk_len)];
        let mut window = Window {
            len: dst_len - dict_start,
            limit: dst_len - dict_start + plain_len.min(room),
            dst: &mut dst[dict_start..],
            dict_len,
            cut,
        };
        decode_chunk(state, chunk, &mut window).map_err(|fault| match fault {
            Fault::Exhausted if !whole => TOO_SHORT,
            Fault::Exhausted | Fault::Damaged | Fault::Overlong => DAMAGED,
        })?;
        if cut {
            return Ok(End::Full);
        }
        dst_len += plain_len;
        at += chunk_len;
    }
}

/// Copies an uncompressed chunk, with `prefix` at most what fits; returns the length copied.
fn copy_stored(src: &[u8], at: &mut usize, dst: &mut [u8], prefix: bool) -> Result<usize, DecodeError> {
    let chunk_len = field(src, at)? + 1;
    if chunk_len > dst.len() && !prefix {
        return Err(DecodeError::TooLong);
    }
    let wanted = chunk_len.min(dst.len());
    let chunk = src.get(*at..*at + wanted).ok_or(TOO_SHORT)?;
    dst[..wanted].copy_from_slice(chunk);
    *at += chunk_len;
    Ok(wanted)
}

/// Decodes one chunk, which fills `src`. If the window is cut, the rest of the chunk is ignored.
fn decode_chunk(state: &mut State, src: &[u8], window: &mut Window<'_>) -> Result<(), Fault> {
    let mut rc = RangeDecoder::new(src)?;
    match state.decode(&mut rc, window)? {
        Stop::Limit if window.cut => Ok(()),
        Stop::Limit if rc.finish()? == Finish::AtEnd => Ok(()),
        _ => Err(Fault::Damaged),
    }
}

/// Reads two bytes, big-endian.
fn field(src: &[u8], at: &mut usize) -> Result<usize, DecodeError> {
    let bytes = src.get(*at..).and_then(<[u8]>::first_chunk).ok_or(TOO_SHORT)?;
    *at += 2;
    Ok(usize::from(u16::from_be_bytes(*bytes)))
}
