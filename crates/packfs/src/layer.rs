//! Containers that an image lies in, and choices among the images of one.

use std::fmt;

/// Limit on images nested in each other.
pub(crate) const DEPTH_MAX: usize = 8;
/// Images of a container that a message names.
pub(crate) const NAMES_MAX: usize = 20;

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
#[non_exhaustive]
pub struct Layer {
    /// Name of the format of the container.
    pub format: &'static str,
    /// Name of the image in it.
    pub file: String,
}

/// A container with several images, of which the caller chose none.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
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
