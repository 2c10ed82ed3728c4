//! Properties of any archive: tar, cpio, or zip.

use crate::Breach;
use packfs::source::{Loaded, Shape, TarInput, load_archive};
use packfs::{Limits, NodeKind, Silent};
use std::io::Cursor;

/// Bytes of a file that are read: enough for what an archive of a few KiB can hold itself.
const READ_LEN_MAX: u64 = 256 << 10;
/// Longest input that is tried.
const INPUT_LEN_MAX: usize = 1 << 20;

/// An archive is read or refused, and what was promised of a file's length is there.
///
/// # Errors
/// A [`Breach`].
pub fn tar(input: &[u8]) -> Result<(), Breach> {
    if input.len() > INPUT_LEN_MAX {
        return Ok(());
    }
    let stream = TarInput::Stream {
        reader: Box::new(Cursor::new(input.to_vec())),
        name: "mutated archive".into(),
        spool_dir: std::env::temp_dir(),
    };
    match load_archive(stream, &Shape::default(), Limits::default(), &Silent) {
        Ok(loaded) => contents_are_there(&loaded),
        Err(_) => Ok(()),
    }
}

/// Reads the beginning of each file, and finds its holes.
pub(super) fn contents_are_there(loaded: &Loaded) -> Result<(), Breach> {
    for (id, node) in loaded.tree.nodes() {
        let NodeKind::File { len, content } = node.kind else { continue };
        if len == 0 {
            continue;
        }
        let missed = |error: packfs::Error| {
            Breach::CheckMissed(format!("{:?}, {len} bytes: {error}", loaded.tree.path(id)))
        };
        let mut reader = loaded.contents.open(content).map_err(missed)?;
        let mut bytes = vec![0; len.min(READ_LEN_MAX) as usize];
        reader.read_exact_at(0, &mut bytes).map_err(missed)?;
        reader.read_exact_at(len - 1, &mut bytes[..1]).map_err(missed)?;
        let mut at = 0;
        while let Some(run) = reader.next_data(at).map_err(missed)? {
            if run.start < at || run.end <= run.start || run.end > len {
                return Err(Breach::CheckMissed(format!("after {at} of {len} comes data at {run:?}")));
            }
            at = run.end;
            if at >= len {
                break;
            }
        }
    }
    Ok(())
}
