//! libdeflate: the only unsafe code of this codec. Owns one C object per Rust object, freed on
//! drop.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;

use libdeflate_sys as sys;

use crate::{DecodeError, EncodeError};

type Compress =
    unsafe extern "C" fn(*mut sys::libdeflate_compressor, *const c_void, usize, *mut c_void, usize) -> usize;

/// Type of `libdeflate_zlib_decompress_ex` and `libdeflate_deflate_decompress_ex`.
type Decompress = unsafe extern "C" fn(
    *mut sys::libdeflate_decompressor,
    *const c_void,
    usize,
    *mut c_void,
    usize,
    *mut usize,
    *mut usize,
) -> sys::libdeflate_result;

pub(super) struct Compressor(NonNull<sys::libdeflate_compressor>);

// SAFETY: the C object is reached only through this owner, is bound to no thread, and every use
// takes `&mut self`.
unsafe impl Send for Compressor {}

impl Compressor {
    /// `level` is 0 to 12; `None` if out of memory.
    pub(super) fn new(level: u8) -> Option<Compressor> {
        // SAFETY: takes any level and answers null for one it does not have.
        let raw = unsafe { sys::libdeflate_alloc_compressor(c_int::from(level)) };
        NonNull::new(raw).map(Compressor)
    }

    /// Writes one zlib stream; `None` if it does not fit.
    pub(super) fn zlib(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Option<usize>, EncodeError> {
        self.write(sys::libdeflate_zlib_compress, src, dst)
    }

    /// Writes one raw stream; `None` if it does not fit.
    pub(super) fn raw(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Option<usize>, EncodeError> {
        self.write(sys::libdeflate_deflate_compress, src, dst)
    }

    pub(super) fn raw_bound(&mut self, src_len: usize) -> usize {
        // SAFETY: the compressor lives as long as self.
        unsafe { sys::libdeflate_deflate_compress_bound(self.0.as_ptr(), src_len) }
    }

    fn write(
        &mut self,
        function: Compress,
        src: &[u8],
        dst: &mut [u8],
    ) -> Result<Option<usize>, EncodeError> {
        // SAFETY: `function` is one of libdeflate's; the compressor lives as long as self; both
        // pointers are valid for the lengths given.
        let len = unsafe {
            function(self.0.as_ptr(), src.as_ptr().cast(), src.len(), dst.as_mut_ptr().cast(), dst.len())
        };
        Ok((len != 0).then_some(len))
    }
}

impl Drop for Compressor {
    fn drop(&mut self) {
        // SAFETY: allocated in `new`, freed once.
        unsafe { sys::libdeflate_free_compressor(self.0.as_ptr()) }
    }
}

pub(super) struct Decompressor(NonNull<sys::libdeflate_decompressor>);

// SAFETY: as for the compressor.
unsafe impl Send for Decompressor {}

impl Decompressor {
    pub(super) fn new() -> Option<Decompressor> {
        // SAFETY: no arguments; null when memory is short.
        NonNull::new(unsafe { sys::libdeflate_alloc_decompressor() }).map(Decompressor)
    }

    /// Decodes one zlib stream that must fill `src`.
    pub(super) fn zlib(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        let (read, len) = self.read(sys::libdeflate_zlib_decompress_ex, src, dst)?;
        all_of(src, read, len)
    }

    /// Decodes one zlib stream at the start of `src`.
    pub(super) fn zlib_at_start(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        Ok(self.read(sys::libdeflate_zlib_decompress_ex, src, dst)?.1)
    }

    /// Decodes one raw stream that must fill `src`.
    pub(super) fn raw(&mut self, src: &[u8], dst: &mut [u8]) -> Result<usize, DecodeError> {
        let (read, len) = self.read(sys::libdeflate_deflate_decompress_ex, src, dst)?;
        all_of(src, read, len)
    }

    fn read(
        &mut self,
        function: Decompress,
        src: &[u8],
        dst: &mut [u8],
    ) -> Result<(usize, usize), DecodeError> {
        let (mut src_len, mut dst_len) = (0, 0);
        // SAFETY: `function` is one of libdeflate's; the decompressor lives as long as self; both
        // pointers are valid for the lengths given, and the two results are written to locals.
        let result = unsafe {
            function(
                self.0.as_ptr(),
                src.as_ptr().cast(),
                src.len(),
                dst.as_mut_ptr().cast(),
                dst.len(),
                &mut src_len,
                &mut dst_len,
            )
        };
        match result {
            sys::libdeflate_result_LIBDEFLATE_SUCCESS => Ok((src_len, dst_len)),
            sys::libdeflate_result_LIBDEFLATE_INSUFFICIENT_SPACE => Err(DecodeError::TooLong),
            _ => Err(DecodeError::Corrupt("damaged DEFLATE stream")),
        }
    }
}

fn all_of(src: &[u8], read: usize, len: usize) -> Result<usize, DecodeError> {
    if read == src.len() {
        Ok(len)
    } else {
        Err(DecodeError::Corrupt("bytes after the end of the DEFLATE stream"))
    }
}

impl Drop for Decompressor {
    fn drop(&mut self) {
        // SAFETY: allocated in `new`, freed once.
        unsafe { sys::libdeflate_free_decompressor(self.0.as_ptr()) }
    }
}
