//! Images within images: a file system in a partition of a disk in a compressed container opens
//! like any other.

#[cfg(feature = "check")]
mod unread;

use crate::foreign::Foreign;
use crate::{OpenOptions, Opened};
use packfs_core::{Error, ErrorKind, Image, Result};
use packfs_format::{Finding, Format, InnerImage, Severity};
use packfs_read::FileAsImage;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
#[cfg(feature = "check")]
pub(crate) use unread::unread;

/// Limit on images nested in each other.
const DEPTH_MAX: usize = 8;
/// Images of a container that a message names.
const NAMES_MAX: usize = 20;

/// Choice among images nested in each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Which {
    /// The innermost that can be told: where a container holds one image of a known format, that
    /// one.
    #[default]
    Innermost,
    /// The same, with these where there is a choice, from the outermost container on: names or
    /// numbers with slashes between them.
    Chosen(String),
    /// The one that fills the file, even if it only holds others.
    Outermost,
}

/// Container of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Layer {
    /// Name of the format of the container.
    pub format: &'static str,
    /// Name of the image in it.
    pub file: String,
}

/// A container with several images, of which the caller chose none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Name of the container, as messages have it.
    pub container: String,
    /// The one that was opened, because no other is of a known format; `None`: the container itself
    /// was.
    pub opened: Option<String>,
    /// All of them, each with its kind if that is known.
    pub images: Vec<(String, Option<String>)>,
    /// Names that lead to the container, where there was a choice on the way: a name in it follows
    /// them, with slashes between all.
    pub path: Vec<String>,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let images = self.images.iter().take(NAMES_MAX);
        let images = images.map(|(name, kind)| format!("{name} ({})", kind.as_deref().unwrap_or("unknown")));
        let mut images = images.collect::<Vec<_>>().join(", ");
        if let Some(more) = self.images.len().checked_sub(NAMES_MAX).filter(|more| *more > 0) {
            images = format!("{images}, and {more} more");
        }
        let (container, path) = (&self.container, self.path.iter().map(|name| format!("{name}/")));
        let path: String = path.collect();
        match &self.opened {
            Some(name) => {
                write!(f, "{container} holds {images}: {name} is shown; --part {path}NAME chooses another")
            }
            None => write!(f, "{container} holds {images}: none is chosen; --part {path}NAME chooses one"),
        }
    }
}

/// Goes inwards from a volume as far as `which` says.
///
/// Errors: `Usage` if what was chosen is not there; `Corrupt` and `Io` of the container, and as
/// [`OpenOptions::open_image`].
pub(crate) fn descend(mut opened: Opened, which: &Which, opening: &OpenOptions) -> Result<Opened> {
    if *which == Which::Outermost {
        return Ok(opened);
    }
    let mut chosen: VecDeque<&str> = match which {
        Which::Chosen(names) => names.split('/').collect(),
        _ => VecDeque::new(),
    };
    let (mut choice, mut path, mut containers) = (None, Vec::new(), Vec::new());
    for _ in 0..DEPTH_MAX {
        let inner_images = opened.volume().inner_images()?;
        // With one image there is no choice: another name is that of an image further inside.
        let is_choice = |name: &&str| inner_images.len() > 1 || find(&inner_images, name).is_some();
        let wanted = chosen.front().copied().filter(|_| !inner_images.is_empty()).filter(is_choice);
        let (name, image) = if let Some(wanted) = wanted {
            chosen.pop_front();
            let inner =
                find(&inner_images, wanted).ok_or_else(|| no_such_image(&opened, &inner_images, wanted))?;
            (inner.name.clone(), inner_image(&opened, inner)?)
        } else {
            let (images, only) = known_images(&opened, &inner_images, opening)?;
            let is_known = only.is_some() || images.iter().any(|it| it.1.is_some());
            if images.len() > 1 && is_known {
                let container = opened.image().name();
                let opened = only.as_ref().map(|(name, _)| name.clone());
                let images = images.into_iter().map(|it| (it.0, it.2)).collect();
                choice = Some(Choice { container, opened, images, path: path.clone() });
            }
            let Some(only) = only else { break };
            only
        };
        if inner_images.len() > 1 {
            path.push(name.clone());
        }
        let mut layers = opened.layers().to_vec();
        layers.push(Layer { format: opened.format().name(), file: name });
        let inner = opening.open_layer(image, layers)?.in_container(&opened);
        containers.push(std::mem::replace(&mut opened, inner));
    }
    match chosen.front() {
        Some(wanted) if chosen.len() == 1 && is_one_of_two(&opened, wanted)? => {
            Ok(opened.with_choice(choice))
        }
        Some(wanted) => {
            // What a damaged container lost may be what was chosen.
            let errors = containers.iter().map(|container| no_such_image(container, &[], wanted));
            let damage = errors.into_iter().find(|error| error.kind() == ErrorKind::Corrupt);
            Err(damage.unwrap_or_else(|| no_such_image(&opened, &[], wanted)))
        }
        None => Ok(opened.with_choice(choice)),
    }
}

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
fn is_one_of_two(opened: &Opened, wanted: &str) -> Result<bool> {
    let format = opened.format();
    Ok(format.name() == wanted && !packfs_formats::beside(format, &**opened.image())?.is_empty())
}

/// Name of an image, its format, and its kind as messages have it.
type Known = (String, Option<&'static str>, Option<String>);

/// An image and its name, if there is one.
type Only = Option<(String, Arc<dyn Image>)>;

/// Tells the kinds of all images, and returns the only one of a known format, if there is one.
fn known_images(
    opened: &Opened,
    inner_images: &[InnerImage],
    opening: &OpenOptions,
) -> Result<(Vec<Known>, Only)> {
    let (mut images, mut known) = (Vec::new(), Vec::new());
    let mut layers = opened.layers().to_vec();
    layers.push(Layer { format: opened.format().name(), file: String::new() });
    for (index, inner) in inner_images.iter().enumerate() {
        let image = inner_image(opened, inner)?;
        // An image that cannot be read is unknown; opening it by name reports the cause.
        let probed = packfs_formats::probe(&*image).ok().flatten();
        let format = opening.with.format(probed, &layers).map(Format::name);
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

/// Returns the disk in containers, such as a qcow2 image, with their warnings: of several images in
/// one, the only one of this format. A filesystem, or an image of no known format, stays as it is.
///
/// Errors: as [`OpenOptions::open_image`].
pub(crate) fn unwrapped(
    image: Arc<dyn Image>,
    wanted: &dyn Format,
    opening: &OpenOptions,
) -> Result<(Arc<dyn Image>, Vec<String>)> {
    let (mut image, _) = opening.decompressed(image)?;
    let mut warnings = Vec::new();
    for _ in 0..DEPTH_MAX {
        let format = packfs_formats::probe(&*image)?;
        if wanted.probe(&*image)? || format.is_none_or(|format| format.info().driver.is_some()) {
            break;
        }
        let opened = opening.open_layer(Arc::clone(&image), Vec::new())?;
        let inner_images = opened.volume().inner_images()?;
        let mut inner =
            inner_images.iter().map(|inner| inner_image(&opened, inner)).collect::<Result<Vec<_>>>()?;
        if inner.len() > 1 {
            inner.retain(|image| wanted.probe(&**image).unwrap_or(false));
        }
        let Some(only) = inner.pop().filter(|_| inner.is_empty()) else { break };
        image = only;
        warnings.extend(opened.own_warnings());
    }
    Ok((image, warnings))
}

/// A file of a container as an image. Errors: `Failed` if it is none.
pub(crate) fn inner_image(opened: &Opened, inner: &InnerImage) -> Result<Arc<dyn Image>> {
    let name = format!("{} in {}", inner.name, opened.image().name());
    Ok(Arc::new(FileAsImage::new(opened.open_id(inner.id)?, name)))
}

/// By its name, or by the number of a partition: `p2` is also `2`.
fn find<'a>(images: &'a [InnerImage], wanted: &str) -> Option<&'a InnerImage> {
    let named = |name: &str| images.iter().find(|inner| inner.name == name);
    let is_number = !wanted.is_empty() && wanted.bytes().all(|byte| byte.is_ascii_digit());
    named(wanted).or_else(|| named(&format!("p{wanted}")).filter(|_| is_number))
}

/// The error for a name that no image of a container has: damage of the container may hide it.
fn no_such_image(opened: &Opened, images: &[InnerImage], wanted: &str) -> Error {
    let is_container = opened.format().info().driver.is_none();
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
