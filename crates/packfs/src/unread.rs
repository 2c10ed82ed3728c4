//! Parts of an image that are not read: what a check has to name.

use crate::inner::known_images;
use crate::open_with::OpenWith;
use crate::{Choice, Opened};
use packfs_core::Result;
use packfs_format::{ExtentFrom, Format};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Names what an image holds that is not read of it: images inside and beside it, another
/// filesystem of a disc, and partitions behind that.
///
/// # Errors
/// `Io`, `Corrupt` of a container.
pub(crate) fn unread(opened: &Opened) -> Result<Vec<String>> {
    let named = |name: &str, kind: Option<&str>| format!("{name} ({})", kind.unwrap_or("unknown"));
    let inner = known_images(opened, &opened.volume().inner_images()?, &OpenWith::default())?.0;
    let mut unread: Vec<String> = inner.iter().map(|it| named(&it.0, it.2.as_deref())).collect();
    if let Some(Choice { opened: Some(shown), images, .. }) = opened.choice() {
        let others = images.iter().filter(|(name, _)| name != shown);
        unread.extend(others.map(|(name, kind)| named(name, kind.as_deref())));
    }
    let (format, image) = (opened.format(), opened.image());
    for other in packfs_formats::beside(format, &**image)? {
        let name = other.name();
        unread.push(format!("the {name} filesystem of the same image; --part {name} reads it"));
    }
    if let Some(table) = packfs_formats::table_before(format, &**image)? {
        unread.extend(partitions_behind(opened, table)?);
    }
    Ok(unread)
}

/// Partitions that begin behind a filesystem.
fn partitions_behind(opened: &Opened, table: &dyn Format) -> Result<Vec<String>> {
    let end = opened.volume().image_len().unwrap_or(u64::MAX);
    let Ok(volume) = table.open(Arc::clone(opened.image())) else {
        return Ok(vec!["a partition table that cannot be read".into()]);
    };
    let mut behind = Vec::new();
    for inner in volume.inner_images()? {
        let mut is_behind = false;
        let placed = volume.extents(inner.id, 0..1, &mut |extent| {
            is_behind = matches!(extent.from, ExtentFrom::Stored(at) if at >= end);
            ControlFlow::Break(())
        });
        if is_behind || placed.is_err() {
            behind.push(format!("partition {} behind the filesystem", inner.name));
        }
    }
    Ok(behind)
}
