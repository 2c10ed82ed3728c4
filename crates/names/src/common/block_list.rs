//! Android's map of blocks, used to compute updates of a partition: a line for each file with its
//! path and the blocks of its data.

use packfs::{Extent, ExtentFrom, InodeKind, OpenOptions, Opened, Result, ResultExt, Walked};
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;

const BLOCK: u64 = 4096;

/// `mount_point` is that of the image. Files without separate blocks have no line.
pub fn write(image: &Path, offset: u64, mount_point: &[u8], map: &Path) -> Result<()> {
    let opened = OpenOptions::new().offset(offset).outermost().open(image)?;
    let cannot = || format!("cannot write {map:?}");
    let mut out = BufWriter::new(std::fs::File::create(map).or_io(cannot)?);
    let mount_point = mount_point.trim_ascii().split(|&byte| byte == b'/').filter(|name| !name.is_empty());
    let above: Vec<&[u8]> = mount_point.collect();
    for walked in opened.walk() {
        let walked = walked?;
        let InodeKind::File { len } = walked.inode.kind else { continue };
        let ranges = ranges(&opened, &walked, len)?;
        if ranges.is_empty() {
            continue;
        }
        let path: Vec<&[u8]> = above.iter().copied().chain([walked.path.as_bytes()]).collect();
        let words: Vec<String> = ranges.into_iter().map(|(first, last)| shown(first, last)).collect();
        out.write_all(&[b"/", &path.join(&b'/')[..], b" ", words.join(" ").as_bytes(), b"\n"].concat())
            .or_io(cannot)?;
    }
    out.flush().or_io(cannot)
}

fn shown(first: u64, last: u64) -> String {
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}

/// First and last block of each run, in the order of the file.
fn ranges(opened: &Opened, walked: &Walked, len: u64) -> Result<Vec<(u64, u64)>> {
    let mut found: Vec<(u64, u64)> = Vec::new();
    opened.volume().extents(walked.id, 0..len, &mut |extent: Extent| {
        let (start, stored) = match extent.from {
            ExtentFrom::Hole => return ControlFlow::Continue(()),
            ExtentFrom::Stored(at) => (at, extent.len),
            ExtentFrom::Block { block, .. } => (block.offset, u64::from(block.stored_len)),
        };
        let first = start / BLOCK;
        let last = start.saturating_add(stored.max(1) - 1) / BLOCK;
        match found.last_mut().filter(|(from, to)| (*from..=to.saturating_add(1)).contains(&first)) {
            Some((_, to)) => *to = last.max(*to),
            None => found.push((first, last)),
        }
        ControlFlow::Continue(())
    })?;
    Ok(found)
}
