//! The version of an object: what tells that it is still the one that was opened.

use crate::answer::Answer;

/// Most bytes of a validator; longer ones are ignored.
const VALIDATOR_LEN_MAX: usize = 512;

/// Version of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) len: u64,
    pub(crate) validator: Validator,
}

/// Proof that an object is unchanged (RFC 9110, section 8.8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Validator {
    /// A strong entity tag, with its quotes.
    ETag(String),
    /// Time of the last change, to the second.
    LastModified(String),
    /// Nothing but the length.
    Length,
}

impl Validator {
    /// Returns the best one that a server sends. A weak entity tag cannot vouch for bytes.
    pub(crate) fn of(answer: &Answer) -> Self {
        let header = |name| {
            let text = answer.header(name)?;
            let is_sane = text.len() <= VALIDATOR_LEN_MAX
                && text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
            is_sane.then(|| text.to_owned())
        };
        let is_strong = |tag: &String| tag.len() > 2 && tag.starts_with('"') && tag.ends_with('"');
        if let Some(tag) = header("etag").filter(is_strong) {
            return Validator::ETag(tag);
        }
        header("last-modified").map_or(Validator::Length, Validator::LastModified)
    }

    /// Returns the header of a request that must fail if the object has changed.
    pub(crate) fn condition(&self) -> Option<(&'static str, String)> {
        match self {
            Validator::ETag(tag) => Some(("if-match", tag.clone())),
            Validator::LastModified(time) => Some(("if-unmodified-since", time.clone())),
            Validator::Length => None,
        }
    }

    /// True unless an answer shows another version. Servers may ignore conditions, and may leave
    /// out validators.
    pub(crate) fn agrees(&self, answer: &Answer) -> bool {
        match (self, Validator::of(answer)) {
            (Validator::ETag(tag), Validator::ETag(found)) => *tag == found,
            (Validator::LastModified(time), Validator::LastModified(found)) => *time == found,
            _ => true,
        }
    }
}
