//! liblzma: the only unsafe code of the lzma and xz codecs. Owns one `lzma_stream`, restarted for
//! every block so that liblzma can reuse its dictionaries and tables.

use std::ptr;

use crate::BranchFilter;
use liblzma_sys as sys;

/// `LZMA_FILTER_LZMA1EXT` (lzma/lzma12.h), which `liblzma-sys` does not declare: LZMA1 whose length
/// is stored elsewhere, so that it needs no end marker.
const FILTER_LZMA1_EXT: sys::lzma_vli = 0x4000_0000_0000_0002;

/// Parameters of an LZMA encoder: a preset with a separate dictionary length.
#[derive(Clone, Copy)]
pub(crate) struct Parameters(sys::lzma_options_lzma);

// SAFETY: plain figures; its one pointer, to a preset dictionary, is null and never set.
unsafe impl Send for Parameters {}

impl Parameters {
    /// `preset` is 0 to 9; `None` if liblzma does not support it.
    pub(crate) fn new(preset: u8, extreme: bool, dict_len: u32) -> Option<Parameters> {
        // SAFETY: all zero is a valid value of this struct of integers and null pointers.
        let mut options: sys::lzma_options_lzma = unsafe { std::mem::zeroed() };
        let preset = u32::from(preset) | if extreme { sys::LZMA_PRESET_EXTREME } else { 0 };
        // SAFETY: writes to the struct it is given.
        if unsafe { sys::lzma_lzma_preset(&mut options, preset) } != 0 {
            return None;
        }
        options.dict_size = dict_len;
        Some(Parameters(options))
    }

    pub(crate) fn with_dict_len(mut self, dict_len: u32) -> Parameters {
        self.0.dict_size = dict_len;
        self
    }

    /// The slowest preset, with longer matches and deeper searches.
    pub(crate) fn thorough(dict_len: u32) -> Option<Parameters> {
        let mut parameters = Parameters::new(9, true, dict_len)?;
        (parameters.0.nice_len, parameters.0.depth) = (273, 1024);
        Some(parameters)
    }

    /// Replaces the numbers of literal context bits, literal position bits, and position bits.
    pub(crate) fn with_properties(mut self, (lc, lp, pb): (u32, u32, u32)) -> Parameters {
        (self.0.lc, self.0.lp, self.0.pb) = (lc, lp, pb);
        self
    }

    /// First byte of an LZMA1 header: `(pb * 5 + lp) * 9 + lc`.
    pub(crate) fn properties(&self) -> u8 {
        u8::try_from((self.0.pb * 5 + self.0.lp) * 9 + self.0.lc).unwrap_or(u8::MAX)
    }
}

/// Outcome of a call: liblzma's `lzma_ret` without impossible values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    End,
    /// The destination is full, or the source ends early.
    NoProgress,
    OutOfMemory,
    MemoryLimit,
    Format,
    /// Settings that this build or format does not support.
    Options,
    Damaged,
    Misuse,
}

impl Outcome {
    fn new(code: sys::lzma_ret) -> Outcome {
        match code {
            sys::LZMA_STREAM_END => Outcome::End,
            sys::LZMA_OK | sys::LZMA_BUF_ERROR => Outcome::NoProgress,
            sys::LZMA_MEM_ERROR => Outcome::OutOfMemory,
            sys::LZMA_MEMLIMIT_ERROR => Outcome::MemoryLimit,
            sys::LZMA_FORMAT_ERROR => Outcome::Format,
            sys::LZMA_OPTIONS_ERROR | sys::LZMA_UNSUPPORTED_CHECK => Outcome::Options,
            sys::LZMA_DATA_ERROR => Outcome::Damaged,
            _ => Outcome::Misuse,
        }
    }
}

pub(crate) struct Run {
    pub(crate) outcome: Outcome,
    pub(crate) src_len: usize,
    pub(crate) dst_len: usize,
}

/// An `lzma_stream`, whose coder depends on the last `start_*` call.
pub(crate) struct Stream(sys::lzma_stream);

// SAFETY: liblzma binds no stream to a thread; all use goes through `&mut self`.
unsafe impl Send for Stream {}

impl Stream {
    pub(crate) fn new() -> Stream {
        // SAFETY: all zero is LZMA_STREAM_INIT (lzma/base.h).
        Stream(unsafe { std::mem::zeroed() })
    }

    pub(crate) fn start_xz_encoder(
        &mut self,
        parameters: &mut Parameters,
        filter: Option<BranchFilter>,
    ) -> Result<(), Outcome> {
        let lzma2 = filter_of(sys::LZMA_FILTER_LZMA2, parameters);
        let filters = match filter {
            None => [lzma2, END, END],
            Some(filter) => {
                [sys::lzma_filter { id: branch_filter_id(filter), options: ptr::null_mut() }, lzma2, END]
            }
        };
        // SAFETY: the array ends with LZMA_VLI_UNKNOWN and, like the options in it, outlives the
        // call, which copies what it needs.
        started(unsafe { sys::lzma_stream_encoder(&mut self.0, filters.as_ptr(), sys::LZMA_CHECK_CRC32) })
    }

    /// Starts an encoder of a bare LZMA1 stream without end marker.
    pub(crate) fn start_lzma1_encoder(&mut self, parameters: &mut Parameters) -> Result<(), Outcome> {
        let filters = [filter_of(FILTER_LZMA1_EXT, parameters), END];
        // SAFETY: as above.
        started(unsafe { sys::lzma_raw_encoder(&mut self.0, filters.as_ptr()) })
    }

    /// Starts an encoder of one MicroLZMA block that is cut at the end of the destination, which
    /// has at least 6 bytes.
    pub(crate) fn start_micro_encoder(&mut self, parameters: &mut Parameters) -> Result<(), Outcome> {
        // SAFETY: the options outlive the call, which copies what it needs.
        started(unsafe { sys::lzma_microlzma_encoder(&mut self.0, &parameters.0) })
    }

    /// Starts a decoder of one MicroLZMA block of `src_len` bytes that decodes to `dst_len` bytes,
    /// or without `exact` to at least as many; ours is tested against it.
    #[cfg(test)]
    pub(crate) fn start_micro_decoder(
        &mut self,
        src_len: u64,
        dst_len: u64,
        exact: bool,
        dict_len: u32,
    ) -> Result<(), Outcome> {
        // SAFETY: no pointers but the stream.
        started(unsafe { sys::lzma_microlzma_decoder(&mut self.0, src_len, dst_len, exact.into(), dict_len) })
    }

    pub(crate) fn run(&mut self, src: &[u8], dst: &mut [u8]) -> Run {
        let strm = &mut self.0;
        strm.next_in = src.as_ptr();
        strm.avail_in = src.len();
        strm.next_out = dst.as_mut_ptr();
        strm.avail_out = dst.len();
        let code = loop {
            // SAFETY: the stream was started, and its pointers are valid for the lengths beside
            // them. The loop ends: two calls in a row without progress answer LZMA_BUF_ERROR.
            let code = unsafe { sys::lzma_code(strm, sys::LZMA_FINISH) };
            if code != sys::LZMA_OK {
                break code;
            }
        };
        let run = Run {
            outcome: Outcome::new(code),
            src_len: src.len() - strm.avail_in,
            dst_len: dst.len() - strm.avail_out,
        };
        // No pointer may outlive the borrowed slices.
        (strm.next_in, strm.avail_in) = (ptr::null(), 0);
        (strm.next_out, strm.avail_out) = (ptr::null_mut(), 0);
        run
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: a stream that was never started is fine, too.
        unsafe { sys::lzma_end(&mut self.0) }
    }
}

pub(crate) fn version() -> String {
    // SAFETY: the call takes nothing and returns a constant.
    let number = unsafe { sys::lzma_version_number() };
    // The last digit distinguishes alpha, beta, and stable.
    format!("{}.{}.{}", number / 10_000_000, number / 10_000 % 1000, number / 10 % 1000)
}

/// CRC32 of xz, gzip, and zip.
pub(crate) fn crc32(data: &[u8]) -> u32 {
    // SAFETY: the pointer is valid for the length beside it.
    unsafe { sys::lzma_crc32(data.as_ptr(), data.len(), 0) }
}

/// CRC64 of xz (ECMA-182).
pub(crate) fn crc64(data: &[u8]) -> u64 {
    // SAFETY: as above.
    unsafe { sys::lzma_crc64(data.as_ptr(), data.len(), 0) }
}

const END: sys::lzma_filter = sys::lzma_filter { id: sys::LZMA_VLI_UNKNOWN, options: ptr::null_mut() };

fn filter_of(id: sys::lzma_vli, parameters: &mut Parameters) -> sys::lzma_filter {
    sys::lzma_filter { id, options: (&raw mut parameters.0).cast() }
}

fn started(code: sys::lzma_ret) -> Result<(), Outcome> {
    if code == sys::LZMA_OK { Ok(()) } else { Err(Outcome::new(code)) }
}

fn branch_filter_id(filter: BranchFilter) -> sys::lzma_vli {
    match filter {
        BranchFilter::X86 => sys::LZMA_FILTER_X86,
        BranchFilter::PowerPc => sys::LZMA_FILTER_POWERPC,
        BranchFilter::Ia64 => sys::LZMA_FILTER_IA64,
        BranchFilter::Arm => sys::LZMA_FILTER_ARM,
        BranchFilter::ArmThumb => sys::LZMA_FILTER_ARMTHUMB,
        BranchFilter::Sparc => sys::LZMA_FILTER_SPARC,
        BranchFilter::Arm64 => sys::LZMA_FILTER_ARM64,
        BranchFilter::RiscV => sys::LZMA_FILTER_RISCV,
    }
}
