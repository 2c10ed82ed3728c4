//! Compressed output streams of sqfs2tar.

use packfs::{Error, Result, ResultExt};
use packfs_terminal::report;
use std::io::Write;
use std::str::FromStr;

const GZIP_LEVEL: u32 = 9;
const XZ_PRESET: u32 = 6;
const ZSTD_LEVEL: i32 = 15;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compressor {
    Gzip,
    Xz,
    Zstd,
}

impl FromStr for Compressor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "gzip" => Ok(Compressor::Gzip),
            "xz" => Ok(Compressor::Xz),
            "zstd" => Ok(Compressor::Zstd),
            other => Err(Error::usage(format!("unknown compressor '{other}'")).hint("gzip, xz and zstd are")),
        }
    }
}

pub fn written<T>(
    compressor: Option<Compressor>,
    mut out: impl Write,
    write: impl FnOnce(&mut dyn Write) -> Result<T>,
) -> Result<T> {
    let cannot = report::cannot_write;
    let result = match compressor {
        None => write(&mut out)?,
        Some(Compressor::Gzip) => {
            let mut encoder = flate2::write::GzEncoder::new(&mut out, flate2::Compression::new(GZIP_LEVEL));
            let result = write(&mut encoder)?;
            encoder.finish().or_io(cannot)?;
            result
        }
        Some(Compressor::Xz) => {
            let mut encoder = liblzma::write::XzEncoder::new(&mut out, XZ_PRESET);
            let result = write(&mut encoder)?;
            encoder.finish().or_io(cannot)?;
            result
        }
        Some(Compressor::Zstd) => {
            let mut encoder = zstd::Encoder::new(&mut out, ZSTD_LEVEL).or_io(cannot)?;
            let result = write(&mut encoder)?;
            encoder.finish().or_io(cannot)?;
            result
        }
    };
    out.flush().or_io(cannot)?;
    Ok(result)
}
