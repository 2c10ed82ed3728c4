//! Errors of decoding, of encoding, and of settings.
//!
//! They contain no position: callers add the block and the image.

use packfs_core::Error;
use std::fmt;

/// Reason why a block could not be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// Bytes that the algorithm does not write; the reason is in the terms of its format.
    Corrupt(&'static str),
    /// The block decodes to more bytes than the destination has.
    TooLong,
    /// The block needs a larger dictionary than [`DICT_LEN_MAX`](crate::DICT_LEN_MAX).
    DictionaryTooLarge,
    /// The decoder could not allocate its state.
    OutOfMemory,
    /// The build omits the codec; see the Cargo features of this crate.
    Absent,
}

impl DecodeError {
    /// Returns the reason, as it is displayed.
    pub fn reason(self) -> &'static str {
        match self {
            DecodeError::Corrupt(reason) => reason,
            DecodeError::TooLong => "decodes to more bytes than the block may have",
            DecodeError::DictionaryTooLarge => "asks for a dictionary above 64 MiB",
            DecodeError::OutOfMemory => "out of memory",
            DecodeError::Absent => "this build was made without the codec",
        }
    }
}

impl DecodeError {
    /// Returns the error of `subject`, such as an image, that contains such a block: `Corrupt`, but
    /// `Unsupported` for a codec that the build omits and `Failed` if out of memory. `fault` names
    /// the block and this reason.
    pub fn of(self, subject: impl fmt::Display, fault: impl fmt::Display) -> Error {
        match self {
            DecodeError::Absent => {
                Error::unsupported(subject, fault).hint("the Cargo feature of the same name brings the codec")
            }
            DecodeError::OutOfMemory => Error::failed(format!("{subject}: {fault}")),
            _ => Error::corrupt(subject, fault),
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

impl std::error::Error for DecodeError {}

/// Reason why a block could not be encoded. A block that does not shrink is not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// The encoder could not allocate its state.
    OutOfMemory,
    /// A codec refused a valid input or setting; the reason is the codec's own.
    Internal(&'static str),
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EncodeError::OutOfMemory => f.write_str("out of memory"),
            EncodeError::Internal(reason) => write!(f, "the encoder failed: {reason}"),
        }
    }
}

impl std::error::Error for EncodeError {}

/// A setting that no encoder accepts: its name, the value found, the values allowed, and an
/// optional hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError {
    what: String,
    found: String,
    allowed: String,
    hint: Option<&'static str>,
}

impl SettingsError {
    /// `what` names the codec and its setting, `found` is in the user's syntax, `allowed` completes
    /// "... allowed".
    pub(crate) fn new(
        what: impl Into<String>,
        found: impl fmt::Display,
        allowed: impl Into<String>,
    ) -> SettingsError {
        SettingsError { what: what.into(), found: found.to_string(), allowed: allowed.into(), hint: None }
    }

    pub(crate) fn with_hint(mut self, hint: &'static str) -> SettingsError {
        self.hint = Some(hint);
        self
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} found, {} allowed", self.what, self.found, self.allowed)?;
        match self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for SettingsError {}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::ErrorKind;

    #[test]
    fn only_damage_makes_an_image_corrupt() {
        let kind = |error: DecodeError| error.of("image", format!("block at 0: {error}")).kind();
        assert_eq!(kind(DecodeError::TooLong), ErrorKind::Corrupt);
        assert_eq!(kind(DecodeError::Absent), ErrorKind::Unsupported);
        assert_eq!(kind(DecodeError::OutOfMemory), ErrorKind::Failed);
    }
}
