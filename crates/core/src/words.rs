//! Option values that are words.

use crate::{Error, Result};

/// An enum whose values are words; [`words!`](crate::words!) implements it.
pub trait Words: Copy + 'static {
    /// Each value, and the word that users type.
    const WORDS: &'static [(&'static str, Self)];
}

/// Returns the value of a word.
///
/// Errors: `Usage`, which names the words.
pub fn value_of<T: Words>(what: &str, word: &str) -> Result<T> {
    T::WORDS.iter().find(|(known, _)| *known == word).map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<&str> = T::WORDS.iter().map(|(word, _)| *word).collect();
        let (last, others) = known.split_last().unwrap_or((&"", &[]));
        Error::usage(format!("unknown {what} {word:?}; use {} or {last}", others.join(", ")))
    })
}

/// Gives the values of an enum the words that users type: [`Words`], a method `word`, and
/// `FromStr`.
#[macro_export]
macro_rules! words {
    ($type:ident: $what:literal, { $($value:ident: $word:literal),+ $(,)? }) => {
        impl $crate::Words for $type {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, $type::$value)),+];
        }

        impl $type {
            /// Returns the word that users type.
            pub fn word(self) -> &'static str {
                match self {
                    $($type::$value => $word),+
                }
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::Error;

            fn from_str(word: &str) -> $crate::Result<Self> {
                $crate::value_of($what, word)
            }
        }
    };
}
