//! Faults of images: a row of [`faults!`](crate::faults!) is variant, fields, message and hint.

use std::fmt;

/// Hint for images that end too early.
pub const TRUNCATED: &str = "the file looks truncated; copy or download it again";

/// A structure of an image and its offset, as messages name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultPlace {
    /// The structure, such as `inode` or `directory record`.
    pub what: &'static str,
    /// Its offset in the image.
    pub at: u64,
}

impl FaultPlace {
    /// Names the structure at an offset.
    pub fn at(what: &'static str, at: u64) -> Self {
        FaultPlace { what, at }
    }
}

impl fmt::Display for FaultPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:#x}", self.what, self.at)
    }
}

/// Defines an enum of faults that is displayed by its messages and becomes a `Corrupt` error of
/// its subject.
///
/// A row is `Variant { field: Type } = MESSAGE, ARGUMENTS;`. The message names its fields in
/// braces; `found` is the value that the image stores. `=> hint HINT` adds advice to the error.
/// `=> decode FIELD` leaves the kind of the error to that field, a `DecodeError`.
#[macro_export]
macro_rules! faults {
    (
        $(#[$doc:meta])* $vis:vis enum $type:ident in $subject:literal {}
        $($(#[$row_doc:meta])* $variant:ident $({ $($field:ident: $field_type:ty),+ })? = $message:literal $(, $argument:expr)*
            $(=> hint $hint:expr)? $(=> decode $reason:ident)?;)+
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $type {
            $($(#[$row_doc])* $variant $({ $($field: $field_type),+ })?,)+
        }

        impl ::std::fmt::Display for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                match *self {
                    $($type::$variant $({ $($field),+ })? => ::std::write!(f, $message $(, $argument)*),)+
                }
            }
        }

        impl From<$type> for ::packfs_core::Error {
            fn from(fault: $type) -> Self {
                match fault {
                    $($($type::$variant { $reason, .. } => $reason.of($subject, fault),)?)+
                    $($($type::$variant { .. } => ::packfs_core::Error::corrupt($subject, fault).hint($hint),)?)+
                    #[allow(unreachable_patterns)]
                    _ => ::packfs_core::Error::corrupt($subject, fault),
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::Error;

    const MAX: u32 = 7;

    crate::faults! {
        /// Faults of an invented format.
        enum Fault in "nofs image" {}

        Magic = "no magic";
        Short { place: FaultPlace, found: u32 } = "{place}: {found} bytes, {MAX} needed" => hint TRUNCATED;
        Signature { found: [u8; 1] } = "signature {:?}", found.as_slice();
    }

    #[test]
    fn a_row_is_variant_fields_message_and_hint() {
        let error = Error::from(Fault::Short { place: FaultPlace::at("inode", 16), found: 3 });
        assert_eq!(error.to_string(), "corrupt nofs image: inode at 0x10: 3 bytes, 7 needed");
        assert_eq!(error.hints(), [TRUNCATED]);
        let error = Error::from(Fault::Magic);
        assert_eq!((error.to_string().as_str(), error.hints().len()), ("corrupt nofs image: no magic", 0));
        assert_eq!(Fault::Signature { found: [1] }.to_string(), "signature [1]");
    }
}
