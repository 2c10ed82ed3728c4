//! Serialization of bytes, such as paths, which a JSON string cannot represent in general.
//!
//! Bytes that are UTF-8 become a string. All others become a readable string with escapes, and a
//! second string with the bytes in hexadecimal; its key ends with `_bytes`.

use crate::{ImagePath, escaped, to_hex};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::ffi::OsStr;
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;

/// Key of bytes; [`byte_key!`](crate::byte_key) defines one.
pub trait ByteKey {
    /// The key.
    const KEY: &'static str;
    /// Meaning of the bytes, for the JSON schema.
    const MEANING: &'static str;
}

/// Defines a [`ByteKey`]: its type, the key, and the meaning of the bytes.
#[macro_export]
macro_rules! byte_key {
    ($name:ident, $key:literal, $meaning:literal) => {
        #[doc = concat!("Key `", $key, "`: ", $meaning)]
        pub struct $name;

        impl $crate::json::ByteKey for $name {
            const KEY: &'static str = $key;
            const MEANING: &'static str = $meaning;
        }
    };
}

/// Bytes under a key, to be flattened into a struct.
pub struct Bytes<'a, K>(&'a [u8], PhantomData<K>);

impl<'a, K> Bytes<'a, K> {
    /// Creates a value for these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Bytes(bytes, PhantomData)
    }
}

impl<'a, K, T: AsRef<OsStr> + ?Sized> From<&'a T> for Bytes<'a, K> {
    fn from(text: &'a T) -> Self {
        Bytes::new(text.as_ref().as_bytes())
    }
}

impl<K: ByteKey> Serialize for Bytes<'_, K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match std::str::from_utf8(self.0) {
            Ok(text) => map.serialize_entry(K::KEY, text)?,
            Err(_) => {
                map.serialize_entry(K::KEY, &escaped(self.0).to_string())?;
                map.serialize_entry(&format!("{}_bytes", K::KEY), &to_hex(self.0))?;
            }
        }
        map.end()
    }
}

#[cfg(feature = "schema")]
impl<K: ByteKey> schemars::JsonSchema for Bytes<'_, K> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        K::KEY.into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "object",
            "properties": {
                K::KEY: {"type": "string", "description": K::MEANING},
                format!("{}_bytes", K::KEY): {
                    "type": "string",
                    "description": format!("The bytes of `{}` in hexadecimal, if they are not UTF-8.", K::KEY),
                },
            },
            "required": [K::KEY],
        })
    }
}

byte_key!(Path, "path", "Path from the root of the image, without a leading slash; empty for the root.");

/// Serialized under the key `path`, to be flattened into a struct.
impl Serialize for ImagePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Bytes::<Path>::new(self.as_bytes()).serialize(serializer)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for ImagePath {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        Bytes::<Path>::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Bytes::<Path>::json_schema(generator)
    }
}

/// Implements `Serialize` for a type as the word that one of its methods returns.
#[macro_export]
macro_rules! serialize_word {
    ($type:ty, $word:ident) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.$word())
            }
        }

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                String::json_schema(generator)
            }
        }
    };
}
