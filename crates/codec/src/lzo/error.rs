//! Faults of an LZO1X stream, and their offsets.

use std::error::Error;
use std::fmt;

/// Reason why a stream was refused. Every `at` is an offset in bytes from the start of the
/// compressed stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LzoError {
    /// The stream ends inside the instruction that starts at `at`.
    InputOverrun {
        /// Offset of the truncated instruction.
        at: usize,
    },
    /// The stream ends between two instructions, without the end marker `11 00 00`.
    MissingEndMarker {
        /// Length of the stream, where the marker should have started.
        at: usize,
    },
    /// The instruction at `at` writes past the end of the output.
    OutputOverrun {
        /// Offset of the instruction.
        at: usize,
        /// Bytes that the instruction would write.
        wanted: usize,
        /// Bytes left in the output.
        room: usize,
    },
    /// The instruction at `at` copies from before the start of the output.
    LookbehindOverrun {
        /// Offset of the instruction.
        at: usize,
        /// Distance of the copy, in bytes.
        distance: usize,
        /// Bytes decoded so far, the maximum distance.
        decoded: usize,
    },
    /// The end marker at `at` has a length other than 3.
    BadEndMarker {
        /// Offset of the marker.
        at: usize,
        /// Length found.
        len: usize,
    },
    /// Bytes follow the end marker.
    TrailingBytes {
        /// Offset of the first byte after the marker.
        at: usize,
        /// Number of bytes that follow.
        count: usize,
    },
    /// The stream is of version 1 (LZO-RLE), which is another format.
    RunLengthStream,
}

impl fmt::Display for LzoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            LzoError::InputOverrun { at } => {
                write!(f, "corrupt lzo stream: ends inside the instruction at {at:#x}")
            }
            LzoError::MissingEndMarker { at } => {
                write!(f, "corrupt lzo stream: ends at {at:#x} without end marker")
            }
            LzoError::OutputOverrun { at, wanted, room } => write!(
                f,
                "corrupt lzo stream: instruction at {at:#x} writes {wanted} bytes, at most {room} allowed"
            ),
            LzoError::LookbehindOverrun { at, distance, decoded } => write!(
                f,
                "corrupt lzo stream: instruction at {at:#x} copies from {distance} bytes back, at most {decoded} allowed"
            ),
            LzoError::BadEndMarker { at, len } => {
                write!(f, "corrupt lzo stream: end marker at {at:#x} has length {len}, only 3 allowed")
            }
            LzoError::TrailingBytes { at, count } => {
                write!(f, "corrupt lzo stream: {count} bytes after the end marker, from {at:#x}")
            }
            LzoError::RunLengthStream => {
                write!(f, "unsupported lzo stream: version 1 (lzo-rle), only version 0 is read")
            }
        }
    }
}

impl Error for LzoError {}
