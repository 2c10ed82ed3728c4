//! Constants of the LZO1X format, shared by encoder and decoder.
//!
//! A stream is a sequence of instructions. Each copies either a run of literals or a match, an
//! earlier part of the output given by distance and length; a match also includes 0 to 3 literals
//! that follow it. The meaning of an instruction byte below 16 depends on the preceding literals:
//! after none it is a literal run, after 1 to 3 a match of two bytes ([`PAIR_LEN`]), after 4 or
//! more a match of three bytes at a distance that the short form cannot reach ([`TRIPLE_LEN`]).
//! Source: Linux, Documentation/staging/lzo.rst, version 0.

/// First instruction byte of a match of 3 to 8 bytes, two bytes long.
pub(super) const SHORT_OPCODE: u8 = 64;
/// First instruction byte, up to [`SHORT_OPCODE`], of a match within 16 KiB, three bytes long or
/// more.
pub(super) const MIDDLE_OPCODE: u8 = 32;
/// First instruction byte, up to [`MIDDLE_OPCODE`], of a match beyond 16 KiB, or of the end marker.
pub(super) const FAR_OPCODE: u8 = 16;

/// Length of a match whose instruction follows 1 to 3 literals and is below [`FAR_OPCODE`].
pub(super) const PAIR_LEN: usize = 2;
pub(super) const PAIR_DISTANCE_MAX: usize = 1 << 10;
/// Length of a match whose instruction follows 4 or more literals and is below [`FAR_OPCODE`].
pub(super) const TRIPLE_LEN: usize = 3;
pub(super) const SHORT_LEN_MAX: usize = 8;
pub(super) const SHORT_DISTANCE_MAX: usize = 1 << 11;
/// Maximum distance of a [`TRIPLE_LEN`] match; the minimum is one more than [`SHORT_DISTANCE_MAX`].
pub(super) const TRIPLE_DISTANCE_MAX: usize = SHORT_DISTANCE_MAX + (1 << 10);
/// Maximum length of a middle match without extension bytes.
pub(super) const MIDDLE_LEN_MAX: usize = 33;
pub(super) const MIDDLE_DISTANCE_MAX: usize = 1 << 14;
/// Maximum length of a far match without extension bytes.
pub(super) const FAR_LEN_MAX: usize = 9;
pub(super) const DISTANCE_MAX: usize = 0xbfff;

/// Maximum literals included in a match instruction.
pub(super) const CARRIED_MAX: usize = 3;
/// Maximum literal run without extension bytes.
pub(super) const RUN_LEN_MAX: usize = 18;
/// Offset that the first byte of a stream adds to the length of its literal run.
pub(super) const FIRST_RUN_BIAS: u8 = 17;
/// Maximum literal run of the first byte of a stream.
pub(super) const FIRST_RUN_MAX: usize = 255 - FIRST_RUN_BIAS as usize;

/// A far match of length 3 and distance 0: the last instruction of every stream.
pub(super) const END_MARKER: [u8; 3] = [FAR_OPCODE | 1, 0, 0];
pub(super) const END_MARKER_LEN: usize = 3;

/// Number of extension bytes of a length that exceeds its maximum by `excess` (1 or more): zeros
/// that count 255 each, then the rest, 1 to 255.
pub(super) const fn extension_len(excess: usize) -> usize {
    1 + (excess - 1) / 255
}
