//! Room for images and trees while they are measured: a folder, mounts in it, and loop devices on
//! files of it, all gone afterwards.
//!
//! Whatever is made registers the step that undoes it ([`Undo`]): it is taken when the value is
//! dropped, or by [`undo_all`] when a session is stopped. What a killed session left is undone by
//! the next one that has its folder in the same place.

mod block_file;
mod folder;
mod left_over;
mod mounted;
mod server;

pub use crate::undo::{Undo, undo_all};
pub use block_file::{BlockFile, loop_device_of};
pub use folder::Scratch;
pub use mounted::Mounted;
