//! The figures of the LZO1X format that encoder and decoder share.
//!
//! A stream is a sequence of instructions. Each copies either a run of literals or a match, an
//! earlier part of the output given by distance and length; a match also carries 0 to 3 literals
//! that follow it. How an instruction byte below 16 reads depends on the literals just before it:
//! none makes it a literal run, 1 to 3 a match of two bytes ([`PAIR_LEN`]), 4 or more a match of
//! three bytes at a distance the usual short form cannot reach ([`TRIPLE_LEN`]). Source: Linux,
//! Documentation/staging/lzo.rst, version 0.

/// Instruction bytes from here on are a match of 3 to 8 bytes, two bytes long.
pub(super) const SHORT_OPCODE: u8 = 64;
/// Instruction bytes from here to [`SHORT_OPCODE`] are a match within 16 KiB, three bytes long or
/// more.
pub(super) const MIDDLE_OPCODE: u8 = 32;
/// Instruction bytes from here to [`MIDDLE_OPCODE`] are a match beyond 16 KiB, or the end marker.
pub(super) const FAR_OPCODE: u8 = 16;

/// The only length a match has whose instruction follows 1 to 3 literals and is below
/// [`FAR_OPCODE`].
pub(super) const PAIR_LEN: usize = 2;
/// Greatest distance of a [`PAIR_LEN`] match.
pub(super) const PAIR_DISTANCE_MAX: usize = 1 << 10;
/// The only length a match has whose instruction follows 4 or more literals and is below
/// [`FAR_OPCODE`].
pub(super) const TRIPLE_LEN: usize = 3;
/// Greatest length of a short match.
pub(super) const SHORT_LEN_MAX: usize = 8;
/// Greatest distance of a short match.
pub(super) const SHORT_DISTANCE_MAX: usize = 1 << 11;
/// Greatest distance of a [`TRIPLE_LEN`] match; the least is one more than [`SHORT_DISTANCE_MAX`].
pub(super) const TRIPLE_DISTANCE_MAX: usize = SHORT_DISTANCE_MAX + (1 << 10);
/// Greatest length of a middle match without extension bytes.
pub(super) const MIDDLE_LEN_MAX: usize = 33;
/// Greatest distance of a middle match.
pub(super) const MIDDLE_DISTANCE_MAX: usize = 1 << 14;
/// Greatest length of a far match without extension bytes.
pub(super) const FAR_LEN_MAX: usize = 9;
/// Greatest distance of any match.
pub(super) const DISTANCE_MAX: usize = 0xbfff;

/// Most literals a match instruction carries after it.
pub(super) const CARRIED_MAX: usize = 3;
/// Greatest literal run without extension bytes.
pub(super) const RUN_LEN_MAX: usize = 18;
/// Offset that the first byte of a stream adds to the length of the literal run it announces.
pub(super) const FIRST_RUN_BIAS: u8 = 17;
/// Greatest literal run the first byte of a stream can announce.
pub(super) const FIRST_RUN_MAX: usize = 255 - FIRST_RUN_BIAS as usize;

/// A far match of length 3 and no distance: the last instruction of every stream.
pub(super) const END_MARKER: [u8; 3] = [FAR_OPCODE | 1, 0, 0];
/// The length the end marker carries.
pub(super) const END_MARKER_LEN: usize = 3;

/// Extension bytes after an instruction for a length that exceeds its greatest by `excess` (1 or
/// more): zeros that count 255 each, then the rest, 1 to 255.
pub(super) const fn extension_len(excess: usize) -> usize {
    1 + (excess - 1) / 255
}
