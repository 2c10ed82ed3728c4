//! Subjects: programs that make images, programs that read them, and filesystems that are written.
//!
//! One row per program, in `subjects.toml` or `writable/`: where it comes from and how it is
//! called, in its own spelling. Programs that a row cannot describe have a file in `makers/`. What
//! it cannot do it says, with the reason, and is never asked for something near it instead. What is
//! measured, and how often, is decided elsewhere.

mod drivers;
mod installed;
mod makers;
mod own;
mod readers;
mod subjects;
mod table;
mod template;
mod unpackers;
mod writable;

pub use installed::Installed;
pub use makers::{Input, Maker, Makes};
pub use readers::{Mounts, Reader};
pub use subjects::Subjects;
pub use table::Unpacks;
pub use unpackers::{Unpack, Unpacker, is_unpacker};
pub use writable::{WritableFs, Writes, is_writable};

#[cfg(test)]
mod tests;
