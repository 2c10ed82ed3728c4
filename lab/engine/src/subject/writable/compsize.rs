//! compsize, which asks btrfs for the codec of every extent.

use std::path::Path;

use packfs::{Error, Result};

use super::{failed, sync};
use crate::process;
use crate::programs::Wanted;
use crate::results::{CodecUsage, Missing, Program};

pub(super) fn find() -> Result<Program, Missing> {
    let from = "Debian package btrfs-compsize";
    Wanted { name: "compsize", version_option: "--help", from }.find()
}

/// Returns the bytes of all files below a directory, codec by codec, `total` first; empty if there
/// are none.
///
/// Errors: compsize is not here, or its table is not as it should be.
pub(super) fn of(at: &Path) -> Result<Vec<CodecUsage>> {
    sync(at)?;
    let program = find().map_err(failed)?;
    // It calls it a failure if nothing is there.
    let said = process::capture(&program.invocation().args(["-b", "-x"]).arg(at), true)?;
    if said.contains("No files") {
        return Ok(vec![]);
    }
    parse(&said).ok_or_else(|| Error::failed(format!("compsize says what nobody understands: {said}")))
}

/// `Type Perc Disk Usage Uncompressed Referenced`, and rows of five words below.
fn parse(said: &str) -> Option<Vec<CodecUsage>> {
    let mut lines = said.lines().skip_while(|line| !line.starts_with("Type "));
    lines.next()?;
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [codec, _, disk, uncompressed, referenced] = words.as_slice() else { return None };
        Some(CodecUsage {
            codec: codec.to_ascii_lowercase(),
            disk: disk.parse().ok()?,
            uncompressed: uncompressed.parse().ok()?,
            referenced: referenced.parse().ok()?,
        })
    };
    let rows: Option<Vec<_>> = lines.take_while(|line| !line.trim().is_empty()).map(row).collect();
    rows.filter(|rows| !rows.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_its_table() {
        let said = "Processed 3 files, 4 regular extents (4 refs), 1 inline.\n\
            Type       Perc     Disk Usage   Uncompressed Referenced  \n\
            TOTAL       47%      1200         2600         2600       \n\
            none       100%       300          300          300       \n\
            zstd        39%       900         2300         2300       \n";
        let rows = parse(said).unwrap();
        assert_eq!(rows.len(), 3);
        assert_eq!((rows[0].codec.as_str(), rows[0].disk, rows[0].uncompressed), ("total", 1200, 2600));
        assert_eq!((rows[2].codec.as_str(), rows[2].disk, rows[2].referenced), ("zstd", 900, 2300));
        assert_eq!(parse("Type Perc\nTOTAL 47% 1.2G 2.6G 2.6G\n"), None);
        assert_eq!(parse(""), None);
    }
}
