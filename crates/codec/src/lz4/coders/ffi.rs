//! liblz4: the only unsafe code of this codec. Owns the encoders' state memory.

use std::ffi::{c_char, c_int, c_void};

use crate::Fit;

// `lz4-sys` compiles these (lz4.h, lz4hc.h) but declares none of them.
use lz4_sys as _;

unsafe extern "C" {
    #[cfg(test)]
    fn LZ4_decompress_safe_partial(
        src: *const c_char,
        dst: *mut c_char,
        src_len: c_int,
        wanted_len: c_int,
        dst_len: c_int,
    ) -> c_int;
    fn LZ4_sizeofState() -> c_int;
    fn LZ4_sizeofStateHC() -> c_int;
    fn LZ4_compress_fast_extState(
        state: *mut c_void,
        src: *const c_char,
        dst: *mut c_char,
        src_len: c_int,
        dst_len: c_int,
        acceleration: c_int,
    ) -> c_int;
    fn LZ4_compress_destSize_extState(
        state: *mut c_void,
        src: *const c_char,
        dst: *mut c_char,
        src_len: *mut c_int,
        dst_len: c_int,
        acceleration: c_int,
    ) -> c_int;
    fn LZ4_compress_HC_destSize(
        state: *mut c_void,
        src: *const c_char,
        dst: *mut c_char,
        src_len: *mut c_int,
        dst_len: c_int,
        level: c_int,
    ) -> c_int;
    fn LZ4_compress_HC_extStateHC(
        state: *mut c_void,
        src: *const c_char,
        dst: *mut c_char,
        src_len: c_int,
        dst_len: c_int,
        level: c_int,
    ) -> c_int;
}

pub(crate) fn version() -> String {
    // SAFETY: the call takes nothing and returns a constant.
    let number = unsafe { lz4_sys::LZ4_versionNumber() };
    format!("{}.{}.{}", number / 10_000, number / 100 % 100, number % 100)
}

/// `LZ4_MAX_INPUT_SIZE`.
const SRC_LEN_MAX: usize = 0x7E00_0000;

pub(super) struct FastState(Box<[u64]>);

impl FastState {
    pub(super) fn new() -> FastState {
        // SAFETY: a constant of the library.
        FastState(state_memory(unsafe { LZ4_sizeofState() }))
    }

    /// Writes one raw block; `None` if it does not fit.
    pub(super) fn compress(&mut self, src: &[u8], dst: &mut [u8], acceleration: c_int) -> Option<usize> {
        let (src_len, dst_len) = lengths(src, dst)?;
        // SAFETY: the state has LZ4_sizeofState bytes, 8-byte aligned, and this call initialises
        // it; the pointers are valid for the lengths given.
        written_len(unsafe {
            LZ4_compress_fast_extState(
                self.0.as_mut_ptr().cast(),
                src.as_ptr().cast(),
                dst.as_mut_ptr().cast(),
                src_len,
                dst_len,
                acceleration,
            )
        })
    }
}

impl FastState {
    pub(super) fn compress_to_fit(&mut self, src: &[u8], dst: &mut [u8], acceleration: c_int) -> Fit {
        fit(LZ4_compress_destSize_extState, &mut self.0, src, dst, acceleration)
    }
}

pub(super) struct HighState(Box<[u64]>);

impl HighState {
    pub(super) fn new() -> HighState {
        // SAFETY: a constant of the library.
        HighState(state_memory(unsafe { LZ4_sizeofStateHC() }))
    }

    /// Writes one raw block; `None` if it does not fit.
    pub(super) fn compress(&mut self, src: &[u8], dst: &mut [u8], level: c_int) -> Option<usize> {
        let (src_len, dst_len) = lengths(src, dst)?;
        // SAFETY: the state has LZ4_sizeofStateHC bytes, 8-byte aligned, and this call initialises
        // it; the pointers are valid for the lengths given.
        written_len(unsafe {
            LZ4_compress_HC_extStateHC(
                self.0.as_mut_ptr().cast(),
                src.as_ptr().cast(),
                dst.as_mut_ptr().cast(),
                src_len,
                dst_len,
                level,
            )
        })
    }
}

impl HighState {
    pub(super) fn compress_to_fit(&mut self, src: &[u8], dst: &mut [u8], level: c_int) -> Fit {
        fit(LZ4_compress_HC_destSize, &mut self.0, src, dst, level)
    }
}

/// Type of [`LZ4_compress_destSize_extState`] and its variants.
type CompressToFit =
    unsafe extern "C" fn(*mut c_void, *const c_char, *mut c_char, *mut c_int, c_int, c_int) -> c_int;

/// `function` takes states of the length of `state`.
fn fit(function: CompressToFit, state: &mut [u64], src: &[u8], dst: &mut [u8], setting: c_int) -> Fit {
    if src.is_empty() || dst.is_empty() {
        return Fit::default();
    }
    let src = &src[..src.len().min(SRC_LEN_MAX)];
    let dst_len = c_int::try_from(dst.len()).unwrap_or(c_int::MAX);
    let mut consumed = c_int::try_from(src.len()).unwrap_or(c_int::MAX);
    // SAFETY: the callers pair function and state, which is 8-byte aligned and initialised by this
    // call; the pointers are valid for the lengths given, and the consumed length is written to a
    // local.
    let written = unsafe {
        function(
            state.as_mut_ptr().cast(),
            src.as_ptr().cast(),
            dst.as_mut_ptr().cast(),
            &mut consumed,
            dst_len,
            setting,
        )
    };
    match (usize::try_from(consumed), written_len(written)) {
        (Ok(consumed @ 1..), Some(written)) => Fit { consumed, written },
        _ => Fit::default(),
    }
}

/// Decodes one raw block that fills `src`, for comparison with our decoder; `None` if it is damaged
/// or longer than `dst`.
#[cfg(test)]
pub(super) fn decompress(src: &[u8], dst: &mut [u8]) -> Option<usize> {
    let src_len = c_int::try_from(src.len()).ok()?;
    let dst_len = c_int::try_from(dst.len()).unwrap_or(c_int::MAX);
    // SAFETY: the pointers are valid for the lengths given; this decoder checks every read and
    // write against them.
    let len = unsafe {
        lz4_sys::LZ4_decompress_safe(src.as_ptr().cast(), dst.as_mut_ptr().cast(), src_len, dst_len)
    };
    usize::try_from(len).ok()
}

/// Decodes a prefix of one raw block until `dst` is full or `src` ends, for comparison; `None` if
/// it is damaged so far.
#[cfg(test)]
pub(super) fn decompress_prefix(src: &[u8], dst: &mut [u8]) -> Option<usize> {
    let src_len = c_int::try_from(src.len()).ok()?;
    let dst_len = c_int::try_from(dst.len()).unwrap_or(c_int::MAX);
    // SAFETY: as above; nothing is written past `wanted_len` and `dst_len`, which are the same.
    let len = unsafe {
        LZ4_decompress_safe_partial(src.as_ptr().cast(), dst.as_mut_ptr().cast(), src_len, dst_len, dst_len)
    };
    usize::try_from(len).ok()
}

fn state_memory(len: c_int) -> Box<[u64]> {
    let words = usize::try_from(len).unwrap_or(0).div_ceil(size_of::<u64>());
    vec![0; words].into_boxed_slice()
}

fn lengths(src: &[u8], dst: &[u8]) -> Option<(c_int, c_int)> {
    let src_len = c_int::try_from(src.len()).ok().filter(|_| src.len() <= SRC_LEN_MAX)?;
    Some((src_len, c_int::try_from(dst.len()).unwrap_or(c_int::MAX)))
}

fn written_len(len: c_int) -> Option<usize> {
    usize::try_from(len).ok().filter(|&len| len > 0)
}
