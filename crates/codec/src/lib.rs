//! Block compression: every codec behind one [`Encoder`] and one [`Decoder`] trait, those that can fill an output of
//! fixed length behind [`FitEncoder`], and one table of what users can name.
//!
//! This crate owns all compressors, their C libraries and their unsafe code. One block is one call: no codec keeps
//! anything of one block for the next, so the same block with the same settings gives the same bytes from any encoder
//! on any thread. Formats, files and threads are other crates' concern; so is what an image's header can record.
#![deny(unsafe_code)]

mod bisect;
mod block_ref;
mod coder;
mod deflate;
mod error;
mod fit;
mod goal;
mod lz4;
mod lzma;
pub mod lzo;
mod lzo_glue;
mod memory;
mod settings;
mod smallest;
mod spec;
mod table;
mod thorough;
mod validate;
mod words;
mod xz;
mod zstd;

pub use block_ref::{BlockRef, DecodedLen};
pub use coder::{Decoder, Decoders, Encoder, decoder, encoder, without_padding};
pub use error::{DecodeError, EncodeError, SettingsError};
pub use fit::{Fit, FitEncoder, fit_encoder};
pub use goal::codec_for_goal;
pub use lzma::DICT_LEN_MAX;
#[cfg(feature = "compare")]
pub use lzma::loops_agree;
pub use memory::{encoder_memory, thorough_memory};
pub use settings::{Algorithm, BranchFilter, BranchSet, CodecSettings, LzoVariant, ZlibStrategy};
pub use spec::{CodecSpec, DictLens};
pub use table::{CODECS, CodecRow};
pub use thorough::{thorough_encoder, thorough_fit_encoder};
