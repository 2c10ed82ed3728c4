//! An image that was opened: what it is, and what it lies in.

use crate::Reader;
use crate::layer::{Choice, Layer};
use packfs_core::Image;
use packfs_format::{Format, Volume};
use std::ops::Deref;
use std::sync::Arc;

/// An opened image. May be shared between threads: all methods take `&self`, and what one thread
/// has decoded serves all.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let (source, path) = (dir.path().join("rootfs"), dir.path().join("root.sqfs"));
/// # std::fs::create_dir_all(&source).unwrap();
/// # std::fs::write(source.join("a"), "1").unwrap();
/// # packfs::pack(&source, &path).run()?;
/// use std::sync::Arc;
///
/// let image = Arc::new(packfs::open(&path)?);
/// let threads: Vec<_> = (0..4)
///     .map(|_| {
///         let image = Arc::clone(&image);
///         std::thread::spawn(move || image.read("a"))
///     })
///     .collect();
/// for thread in threads {
///     assert_eq!(thread.join().unwrap()?, b"1");
/// }
/// assert!(image.counters().decodes <= 1);
/// # Ok::<(), packfs::Error>(())
/// ```
pub struct Opened {
    pub(crate) image: Arc<dyn Image>,
    pub(crate) format: &'static dyn Format,
    pub(crate) reader: Reader,
    pub(crate) layers: Vec<Layer>,
    /// Volumes of the layers, the outermost first.
    pub(crate) containers: Vec<Arc<dyn Volume>>,
    pub(crate) choice: Option<Choice>,
    pub(crate) warnings: Vec<String>,
}

/// An opened image is read as its [`Reader`] does.
impl Deref for Opened {
    type Target = Reader;

    fn deref(&self) -> &Reader {
        &self.reader
    }
}

impl Opened {
    pub(crate) fn with_choice(self, choice: Option<Choice>) -> Self {
        Opened { choice, ..self }
    }

    /// Returns warnings about the image and its layers, without the choice among several.
    pub(crate) fn own_warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// Puts the warnings of the layers around it before its own.
    pub(crate) fn within(self, mut warnings: Vec<String>) -> Self {
        warnings.extend(self.warnings);
        Opened { warnings, ..self }
    }

    /// Notes the container around it, and those around that.
    pub(crate) fn in_container(self, outer: &Opened) -> Self {
        let containers = outer.containers.iter().chain([&outer.reader.volume]).cloned().collect();
        Opened { containers, ..self }.within(outer.own_warnings())
    }

    /// Returns the volumes of the layers, the outermost first.
    #[cfg(feature = "check")]
    pub(crate) fn containers(&self) -> &[Arc<dyn Volume>] {
        &self.containers
    }

    /// Its format.
    pub fn format(&self) -> &'static dyn Format {
        self.format
    }

    /// Its bytes.
    pub fn image(&self) -> &Arc<dyn Image> {
        &self.image
    }

    /// The images that it lies in, the outermost first; none if it fills its file.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// The images beside it in a container, where [`crate::OpenOptions::part`] chose none of them;
    /// [`Opened::warnings`] has it as a message.
    pub fn choice(&self) -> Option<&Choice> {
        self.choice.as_ref()
    }

    /// Returns warnings for the user: an image that was chosen of several, changes in a journal
    /// that were not applied, missing devices.
    pub fn warnings(&self) -> Vec<String> {
        self.choice.iter().map(Choice::to_string).chain(self.warnings.clone()).collect()
    }
}
