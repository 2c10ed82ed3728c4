//! Images within images: a file system in a partition of a disk in a compressed container opens
//! like any other.

use crate::{OpenOptions, Opened};
use packfs_core::{Error, Image, Result};
use packfs_format::{Format, InnerImage};
use packfs_read::FileAsImage;
use std::fmt;
use std::sync::Arc;

/// Limit on images nested in each other.
const DEPTH_MAX: usize = 8;

/// Choice among images nested in each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Which {
    /// The innermost that can be told: where a container holds one image of a known format, that
    /// one.
    #[default]
    Innermost,
    /// The same, with this one where there is a choice, as its name says or its number.
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
    /// All of them, each with its format if that is known.
    pub images: Vec<(String, Option<&'static str>)>,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let images =
            self.images.iter().map(|(name, format)| format!("{name} ({})", format.unwrap_or("unknown")));
        let images = images.collect::<Vec<_>>().join(", ");
        let container = &self.container;
        match &self.opened {
            Some(name) => {
                write!(f, "{container} holds {images}: {name} is shown; --part NAME chooses another")
            }
            None => write!(f, "{container} holds {images}: none is chosen; --part NAME chooses one"),
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
    let mut chosen = match which {
        Which::Chosen(name) => Some(name.as_str()),
        _ => None,
    };
    let mut choice = None;
    for _ in 0..DEPTH_MAX {
        let inner_images = opened.volume().inner_images()?;
        let (mut known, mut images) = (Vec::new(), Vec::new());
        // With one image there is no choice: what was chosen is further inside.
        let wanted = if inner_images.len() == 1 { None } else { chosen };
        if let Some(wanted) = wanted.filter(|_| !inner_images.is_empty()) {
            chosen = None;
            let inner = find(&inner_images, wanted)?;
            known.push((inner.name.clone(), inner_image(&opened, inner)?));
        } else {
            for inner in &inner_images {
                let image = inner_image(&opened, inner)?;
                // An image that cannot be read is unknown; opening it by name reports the cause.
                let format = packfs_formats::probe(&*image).ok().flatten();
                images.push((inner.name.clone(), format.map(Format::name)));
                if format.is_some() {
                    known.push((inner.name.clone(), image));
                }
            }
            if images.len() > 1 && !known.is_empty() {
                let opened_name = known.first().filter(|_| known.len() == 1).map(|(name, _)| name.clone());
                choice = Some(Choice { container: opened.image().name(), opened: opened_name, images });
            }
        }
        let mut known = known.into_iter();
        let (Some((name, image)), None) = (known.next(), known.next()) else { break };
        let mut layers = opened.layers().to_vec();
        layers.push(Layer { format: opened.format().name(), file: name });
        opened = opening.open_layer(image, layers)?.within(opened.own_warnings());
    }
    match chosen {
        Some(wanted) => Err(Error::usage(format!(
            "cannot select image {wanted:?}: the file is not a container of several images"
        ))),
        None => Ok(opened.with_choice(choice)),
    }
}

/// Returns the disk in containers of one image each, with their warnings. What is a filesystem, or
/// of no known format, stays as it is.
///
/// Errors: as [`OpenOptions::open_image`].
pub(crate) fn unwrapped(
    image: Arc<dyn Image>,
    opening: &OpenOptions,
) -> Result<(Arc<dyn Image>, Vec<String>)> {
    let (mut image, _) = opening.decompressed(image)?;
    let mut warnings = Vec::new();
    for _ in 0..DEPTH_MAX {
        let format = packfs_formats::probe(&*image)?;
        if format.is_none_or(|format| format.info().driver.is_some()) {
            break;
        }
        let opened = opening.open_layer(Arc::clone(&image), Vec::new())?;
        let [inner] = &*opened.volume().inner_images()? else { break };
        image = inner_image(&opened, inner)?;
        warnings.extend(opened.own_warnings());
    }
    Ok((image, warnings))
}

/// A file of a container as an image. Errors: `Failed` if it is none.
pub(crate) fn inner_image(opened: &Opened, inner: &InnerImage) -> Result<Arc<dyn Image>> {
    let name = format!("{} in {}", inner.name, opened.image().name());
    Ok(Arc::new(FileAsImage::new(opened.open_id(inner.id)?, name)))
}

/// By name, or by its digits: `p2` is also `2`.
fn find<'a>(images: &'a [InnerImage], wanted: &str) -> Result<&'a InnerImage> {
    let is_wanted = |inner: &&InnerImage| {
        let digits = inner.name.trim_start_matches(|c: char| !c.is_ascii_digit());
        inner.name == wanted || !digits.is_empty() && digits == wanted
    };
    images.iter().find(is_wanted).ok_or_else(|| {
        let names: Vec<&str> = images.iter().map(|inner| inner.name.as_str()).collect();
        Error::usage(format!("cannot select image {wanted:?}: the container has no such image"))
            .hint(format!("images in it: {}", names.join(", ")))
    })
}
