//! Groups of options that several verbs have, and what they mean.

mod coding;
mod image;
mod layers;
mod limits;
mod nested;
mod oci;
mod remote;
mod sandbox;
mod text_file;
mod trust;

pub use coding::{CodingArgs, parse_option};
pub use image::{ImageInput, patterns};
pub use layers::{LayerArgs, LayersOfTwo};
pub use limits::LimitArgs;
pub use nested::{Magic, NestedArgs, parse_magic};
pub use oci::OciArgs;
pub use remote::{RemoteArgs, store};
pub use sandbox::{SandboxArg, reading};
pub use text_file::read_text;
pub use trust::TrustArgs;
