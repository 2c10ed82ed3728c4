//! Keys of JSON documents that hold names: see [`packfs_terminal::json`].
//!
//! Every document is a struct of its verb that derives `Serialize`. In tests it derives
//! `JsonSchema`, too, and its doc comments become docs/guide/cli.md.

pub use packfs_terminal::json::{Array, Object, Value, hex, print, put_bytes};
use serde::Serialize;

/// Defines a type for bytes under a key, to be flattened into a document.
macro_rules! byte_key {
    ($name:ident, $key:literal, $meaning:literal) => {
        #[doc = concat!("Bytes under `", $key, "`: ", $meaning)]
        #[derive(Clone, Copy)]
        pub struct $name<'a>(pub &'a [u8]);

        impl<'a, T: AsRef<std::ffi::OsStr> + ?Sized> From<&'a T> for $name<'a> {
            fn from(text: &'a T) -> Self {
                $name(std::os::unix::ffi::OsStrExt::as_bytes(text.as_ref()))
            }
        }

        impl serde::Serialize for $name<'_> {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                $crate::out::json::put_bytes(&mut map, $key, self.0)?;
                serde::ser::SerializeMap::end(map)
            }
        }

        #[cfg(test)]
        impl schemars::JsonSchema for $name<'_> {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $key.into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "object",
                    "properties": {
                        $key: {"type": "string", "description": $meaning},
                        concat!($key, "_bytes"): {
                            "type": "string",
                            "description": concat!("The bytes of `", $key, "` in hexadecimal, if they are not UTF-8."),
                        },
                    },
                    "required": [$key],
                })
            }
        }
    };
}

pub(crate) use byte_key;

byte_key!(Image, "image", "Path of the image.");
byte_key!(Path, "path", "Path from the root of the image, without a leading slash; empty for the root.");
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

/// Returns the word for a file type.
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
        name: Name<'static>,
        #[serde(flatten)]
        target: Target<'static>,
    }

    #[test]
    fn names_that_are_not_utf8_keep_their_bytes() {
        let document = Document { name: Name("käse\n".as_bytes()), target: Target(b"a\xff") };
        assert_eq!(
            serde_json::to_value(document).unwrap(),
            serde_json::json!({"name": "käse\n", "target": "a\\xff", "target_bytes": "61ff"})
        );
    }
}
