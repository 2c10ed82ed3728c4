//! Destinations of images beyond the files of this machine.

use crate::{Image, Progress, Result};
use std::fmt::Debug;

/// Place that takes an image once it is complete, such as an object store.
pub trait Recipient: Debug + Send + Sync {
    /// Returns the name in messages, without secrets.
    fn name(&self) -> String;

    /// Takes the image. After a failure, the place is as it was.
    ///
    /// Errors: those of the place, of reading the image, and `Cancelled`.
    fn take(&self, image: &dyn Image, progress: &dyn Progress) -> Result<()>;
}
