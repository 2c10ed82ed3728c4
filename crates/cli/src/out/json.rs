//! Keys of JSON documents that hold names: see [`packfs::json`].
//!
//! A document is a report of the library, or a struct of its verb that derives `Serialize`. In
//! tests both implement `JsonSchema`, too, and their doc comments become docs/guide/cli.md.

pub use packfs::json::{Bytes, byte_key};
pub use packfs_terminal::json::{Array, Object, Value, line, print, text};
use serde::Serialize;

byte_key!(Image, "image", "Path of the image.");
byte_key!(Plan, "plan", "Folder of the plan.");
byte_key!(Source, "source", "Path of the source.");
byte_key!(Name, "name", "Name of the extended attribute.");
byte_key!(XattrValue, "value", "Value of the extended attribute.");

/// Number of a device node.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Device {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

impl From<packfs::DeviceNumber> for Device {
    fn from(number: packfs::DeviceNumber) -> Self {
        Device { major: number.major, minor: number.minor }
    }
}

pub fn type_word(file_type: packfs::FileType) -> &'static str {
    use packfs::FileType;
    match file_type {
        FileType::Directory => "directory",
        FileType::File => "file",
        FileType::Symlink => "symlink",
        FileType::BlockDevice => "block_device",
        FileType::CharDevice => "char_device",
        FileType::Fifo => "fifo",
        FileType::Socket => "socket",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    byte_key!(Target, "target", "Target.");

    #[derive(Serialize)]
    struct Document {
        #[serde(flatten)]
        name: Bytes<'static, Name>,
        #[serde(flatten)]
        target: Bytes<'static, Target>,
    }

    #[test]
    fn names_that_are_not_utf8_keep_their_bytes() {
        let document = Document { name: Bytes::new("käse\n".as_bytes()), target: Bytes::new(b"a\xff") };
        assert_eq!(
            serde_json::to_value(document).unwrap(),
            serde_json::json!({"name": "käse\n", "target": "a\\xff", "target_bytes": "61ff"})
        );
    }
}
