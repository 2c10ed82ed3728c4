//! libzstd's parse and entropy stage as separate calls, which the safe wrapper does not offer.

use std::ffi::c_int;
use std::ptr::NonNull;

use zstd_sys as sys;

pub(super) use sys::ZSTD_Sequence as Sequence;
pub(super) use sys::ZSTD_cParameter as Parameter;

use crate::EncodeError;
use crate::zstd::coders::encode_error;

/// An end of block without literals.
pub(super) const BLOCK_END: Sequence = Sequence { offset: 0, litLength: 0, matchLength: 0, rep: 0 };

/// True for the end of a block: the remaining literals without a match.
pub(super) fn is_block_end(sequence: &Sequence) -> bool {
    sequence.offset == 0 && sequence.matchLength == 0
}

pub(super) fn plain_len(sequence: &Sequence) -> usize {
    sequence.litLength as usize + sequence.matchLength as usize
}

pub(super) fn parameters(level: i32, src_len: usize) -> sys::ZSTD_compressionParameters {
    // SAFETY: takes any figures.
    unsafe { sys::ZSTD_getCParams(level, src_len as u64, 0) }
}

pub(super) struct Context(NonNull<sys::ZSTD_CCtx>);

// SAFETY: libzstd binds no context to a thread; all use goes through `&mut self`.
unsafe impl Send for Context {}

impl Context {
    /// `None` if out of memory.
    pub(super) fn new() -> Option<Context> {
        // SAFETY: no arguments.
        NonNull::new(unsafe { sys::ZSTD_createCCtx() }).map(Context)
    }

    /// Sets a parameter for all further frames.
    pub(super) fn set(&mut self, parameter: Parameter, value: c_int) -> Result<(), EncodeError> {
        // SAFETY: the context lives as long as self. A frame that failed has left it where no
        // parameter may be set.
        checked(unsafe {
            sys::ZSTD_CCtx_reset(self.0.as_ptr(), sys::ZSTD_ResetDirective::ZSTD_reset_session_only);
            sys::ZSTD_CCtx_setParameter(self.0.as_ptr(), parameter, value)
        })
        .map(|_| ())
    }

    /// Parses all of `src` into sequences with ends of blocks. The result must be verified: libzstd
    /// calls this a debugging function.
    pub(super) fn parse(&mut self, src: &[u8], sequences: &mut Vec<Sequence>) -> Result<(), EncodeError> {
        sequences.clear();
        // SAFETY: no pointers.
        sequences.reserve(unsafe { sys::ZSTD_sequenceBound(src.len()) });
        // SAFETY: the context lives as long as self; the pointers are valid for the lengths and the
        // capacity given.
        let count = checked(unsafe {
            sys::ZSTD_generateSequences(
                self.0.as_ptr(),
                sequences.as_mut_ptr(),
                sequences.capacity(),
                src.as_ptr().cast(),
                src.len(),
            )
        })?;
        debug_assert!(count <= sequences.capacity());
        // SAFETY: this many have been written.
        unsafe { sequences.set_len(count) };
        Ok(())
    }

    /// Writes one frame of these sequences, which end with an end of block and decode to `src`;
    /// returns the length, or an error if `dst` is too short. Matches may reach `before` bytes back
    /// from the start of `src`: the frame's blocks are then only valid after others.
    pub(super) fn encode(
        &mut self,
        sequences: &[Sequence],
        before: usize,
        src: &[u8],
        dst: &mut [u8],
    ) -> Result<usize, EncodeError> {
        if !stand_for(sequences, before, src.len()) {
            return Err(EncodeError::Internal("zstd sequences of another length than their input"));
        }
        // SAFETY: the context lives as long as self; the pointers are valid for the lengths given;
        // the sequences copy exactly the literals of `src`, as `stand_for` has seen to; what
        // matches refer to is not read.
        checked(unsafe {
            sys::ZSTD_compressSequences(
                self.0.as_ptr(),
                dst.as_mut_ptr().cast(),
                dst.len(),
                sequences.as_ptr(),
                sequences.len(),
                src.as_ptr().cast(),
                src.len(),
            )
        })
    }
}

/// True if sequences end with an end of block and decode to this many bytes, with matches only in
/// earlier bytes.
fn stand_for(sequences: &[Sequence], before: usize, src_len: usize) -> bool {
    let mut at = before;
    for sequence in sequences {
        at += sequence.litLength as usize;
        if !is_block_end(sequence) && (sequence.offset == 0 || sequence.offset as usize > at) {
            return false;
        }
        at += sequence.matchLength as usize;
    }
    at == before + src_len && sequences.last().is_some_and(is_block_end)
}

fn checked(code: usize) -> Result<usize, EncodeError> {
    // SAFETY: takes any figure.
    match unsafe { sys::ZSTD_isError(code) } {
        0 => Ok(code),
        _ => Err(encode_error(code)),
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: created in `new`, freed once.
        unsafe { sys::ZSTD_freeCCtx(self.0.as_ptr()) };
    }
}
