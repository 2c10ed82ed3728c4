//! Groups of options that several verbs have, and what they mean.

mod choices;
mod image;
mod remote;
mod sandbox;
mod text_file;
mod texts;

pub use choices::{
    Limiting, OfA, OfB, OfBoth, OfOld, OfSource, Opening, Packing, Planning, Registry, Repacking, Running,
    Shaping,
};
pub use image::{ImageInput, patterns};
pub use packfs::source_date_epoch;
pub use remote::store;
pub use sandbox::{SandboxArg, reading, writing};
pub use text_file::read_text;
pub use texts::{Choice, Texts};
