//! Handles of the header, which C sees as names only.

use crate::held::Held;
use crate::session::{Listing, Session};
use packfs::FileReader;

/// An opened image.
pub struct Image(pub(crate) Held<Session>);

/// An opened file of an image.
pub struct File(pub(crate) Held<FileReader>);

/// An opened directory of an image, with the place that reading it has reached.
pub struct Dir(pub(crate) Held<Listing>);

/// Compiles only for what threads may share.
const fn shared<T: Send + Sync>() {}

const _: () = {
    shared::<Image>();
    shared::<File>();
    shared::<Dir>();
};
