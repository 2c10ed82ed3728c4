//! Block compression: [`Encoder`] and [`Decoder`] for every codec, [`FitEncoder`] for those that
//! can fill an output of fixed length, and one table of the codecs that users can name.
//!
//! A part of [packfs](https://docs.rs/packfs): only its API is stable.
//!
//! This crate owns all compressors, their C libraries, and their unsafe code. One call codes one
//! block: no codec keeps state between blocks, so the same block with the same settings yields the
//! same bytes from any encoder on any thread. Formats, files, threads, and the limits of image
//! headers are the concern of other crates.
//!
//! ```
//! use packfs_codec::{Algorithm, CodecSpec, DictLens, decoder, encoder};
//!
//! let spec: CodecSpec = "zstd:19".parse()?;
//! let settings = spec.resolve(&[Algorithm::Zstd], DictLens::of_block(4096))?.ok_or("no codec")?;
//! let (block, mut out, mut back) = ([b'x'; 4096], [0; 4096], [0; 4096]);
//! let len = encoder(&settings)?.compress(&block, &mut out)?.ok_or("incompressible")?;
//! assert_eq!(decoder(Algorithm::Zstd).decompress(&out[..len], &mut back)?, back.len());
//! assert_eq!(back, block);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A new codec
//!
//! 1. A folder `src/NAME/`: in `coders` its encoder and decoder ([`Encoder`], [`Decoder`], and
//!    [`FitEncoder`] if it can fill an output) and an `impl Coders`, and in `settings.rs` a struct
//!    `NAMESettings` with an `impl Settings` (options, ranges, memory) and a `static NAME: Codec`
//!    (name, levels, help, levels for goals, decoding).
//! 2. A row in `src/table.rs`, which declares the codec's variant of [`CodecSettings`].
//! 3. A row in `src/algorithm.rs` for each framing that has no [`Algorithm`] yet.
//! 4. Exports in `src/lib.rs`: the folder's module, and its settings.
//! 5. Its library, if any, in Cargo.toml, behind a feature that gates the folder's module `coders`;
//!    calls of C in `src/NAME/coders/ffi.rs`, which SECURITY.md lists.
//!
//! A format that stores it maps its own number to the algorithm and names it in its list of
//! algorithms; the tests in `tests/common` get a line of levels to try.
#![deny(unsafe_code)]

mod algorithm;
mod block_ref;
mod branches;
mod codec;
mod coders;
mod decoders;
mod deflate;
mod dictionary;
mod encoders;
mod error;
mod libraries;
mod lz4;
mod lzma;
mod lzo;
mod options;
#[cfg(any(feature = "deflate", feature = "xz", feature = "zstd"))]
mod smallest;
mod spec;
mod table;
mod traits;
mod words;
mod xz;
mod zstd;

pub use algorithm::Algorithm;
pub use block_ref::{BlockRef, DecodedLen};
pub use branches::{BranchFilter, BranchSet};
pub use codec::Codec;
pub use decoders::{Decoders, decoder, without_padding};
pub use deflate::{DeflateSettings, ZlibSettings, ZlibStrategy};
pub use dictionary::{DICT_LEN_MAX, DictLens};
pub use encoders::{
    encoder, encoder_memory, fit_encoder, thorough_encoder, thorough_fit_encoder, thorough_memory,
};
pub use error::{DecodeError, EncodeError, SettingsError};
pub use libraries::libraries;
pub use lz4::{Lz4HcSettings, Lz4Settings};
#[cfg(feature = "compare")]
pub use lzma::loops_agree;
pub use lzma::{LzmaFraming, LzmaSettings};
pub use lzo::{LzoSettings, LzoVariant};
pub use spec::{CodecSpec, codec_for_goal};
pub use table::{CODECS, CodecSettings};
pub use traits::{Decoder, Encoder, Fit, FitEncoder};
pub use xz::XzSettings;
pub use zstd::ZstdSettings;
