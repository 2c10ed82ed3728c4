//! Images in an opened container, and filesystems beside each other on one disc.

use crate::Opened;
use crate::foreign::Foreign;
use crate::layer::{Layer, NAMES_MAX, Which};
use crate::open_with::OpenWith;
use packfs_core::{Error, Image, Result};
use packfs_format::{Finding, Format, InnerImage, Severity};
use packfs_read::FileAsImage;
use std::sync::Arc;

/// Returns the format of an image: of a disc with two filesystems the one that was chosen by the
/// name of its format.
pub(crate) fn format_of(image: &dyn Image, which: &Which) -> Result<Option<&'static dyn Format>> {
    let Some(first) = packfs_formats::probe(image)? else { return Ok(None) };
    let Which::Chosen(names) = which else { return Ok(Some(first)) };
    let chosen = names.rsplit('/').next();
    let others = packfs_formats::beside(first, image)?;
    Ok(others.into_iter().find(|other| Some(other.name()) == chosen).or(Some(first)))
}

/// Returns a warning about the filesystem that the image opens as by default, if another of it was
/// chosen: in ISO 9660, a file over 4 GiB of both may have its length modulo 2^32.
pub(crate) fn unshown(image: &dyn Image, format: &dyn Format, which: &Which) -> Result<Option<String>> {
    if !matches!(which, Which::Chosen(_)) {
        return Ok(None);
    }
    let first = packfs_formats::probe(image)?.filter(|first| first.name() != format.name());
    Ok(first.map(|first| {
        let (first, own) = (first.name(), format.name());
        format!(
            "{own} is shown; the {first} filesystem of the same image may hold other files, and longer ones"
        )
    }))
}

/// Returns true if an image was opened as this format, and has another.
pub(crate) fn is_one_of_two(opened: &Opened, wanted: &str) -> Result<bool> {
    let format = opened.format();
    Ok(format.name() == wanted && !packfs_formats::beside(format, &**opened.image())?.is_empty())
}

/// Name of an image, its format, and its kind as messages have it.
pub(crate) type Known = (String, Option<&'static str>, Option<String>);

/// An image and its name, if there is one.
pub(crate) type Only = Option<(String, Arc<dyn Image>)>;

/// Tells the kinds of all images, and returns the only one of a known format, if there is one.
pub(crate) fn known_images(
    opened: &Opened,
    inner_images: &[InnerImage],
    with: &OpenWith,
) -> Result<(Vec<Known>, Only)> {
    let (mut images, mut known) = (Vec::new(), Vec::new());
    let mut layers = opened.layers().to_vec();
    layers.push(Layer { format: opened.format().name(), file: String::new() });
    for (index, inner) in inner_images.iter().enumerate() {
        let image = inner_image(opened, inner)?;
        // An image that cannot be read is unknown; opening it by name reports the cause.
        let probed = packfs_formats::probe(&*image).ok().flatten();
        let format = with.format(probed, &layers).map(Format::name);
        let kind = match format {
            Some(name) => Some(name.to_owned()),
            None if index < NAMES_MAX => Foreign::identify(&image).and_then(Foreign::kind),
            None => None,
        };
        images.push((inner.name.clone(), format, kind));
        // Two are enough for a choice.
        if format.is_some() && known.len() < 2 {
            known.push((inner.name.clone(), image));
        }
    }
    let only = known.pop().filter(|_| known.is_empty());
    Ok((images, only))
}

/// A file of a container as an image. Errors: `Failed` if it is none.
pub(crate) fn inner_image(opened: &Opened, inner: &InnerImage) -> Result<Arc<dyn Image>> {
    let name = format!("{} in {}", inner.name, opened.image().name());
    Ok(Arc::new(FileAsImage::new(opened.open_id(inner.id)?, name)))
}

/// By its name, or by the number of a partition: `p2` is also `2`.
pub(crate) fn find<'a>(images: &'a [InnerImage], wanted: &str) -> Option<&'a InnerImage> {
    let named = |name: &str| images.iter().find(|inner| inner.name == name);
    let is_number = !wanted.is_empty() && wanted.bytes().all(|byte| byte.is_ascii_digit());
    named(wanted).or_else(|| named(&format!("p{wanted}")).filter(|_| is_number))
}

/// The error for a name that no image of a container has: damage of the container may hide it.
pub(crate) fn no_such_image(opened: &Opened, images: &[InnerImage], wanted: &str) -> Error {
    let is_container = opened.volume().inside().is_some();
    let mut fault = None;
    let mut keep = |finding: Finding| {
        if fault.is_none() && finding.severity == Severity::Error {
            fault = Some(finding.fault);
        }
    };
    // A check that ends early has found something.
    let ended = if is_container { opened.volume().check(&mut keep) } else { Ok(()) };
    let fault = fault.or(ended.err().map(|error| error.to_string()));
    if let Some(fault) = fault {
        let subject = format!("{} image", opened.format().name());
        let what = format!("{} has no image {wanted:?}, but a fault: {fault}", opened.image().name());
        return Error::corrupt(subject, what);
    }
    if images.is_empty() {
        return Error::usage(format!(
            "cannot select image {wanted:?}: the file is not a container of several images"
        ));
    }
    let names: Vec<&str> = images.iter().take(NAMES_MAX).map(|inner| inner.name.as_str()).collect();
    let more = if images.len() > NAMES_MAX { ", ..." } else { "" };
    Error::usage(format!("cannot select image {wanted:?}: the container has no such image"))
        .hint(format!("images in it: {}{more}", names.join(", ")))
}
