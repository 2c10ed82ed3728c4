//! Reports on an image: facts for `info`, owners of its bytes for `info --space`, findings of
//! `check`.

/// The value of a [`Fact`], typed so that JSON keeps numbers as numbers.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(untagged))]
#[non_exhaustive]
pub enum FactValue {
    /// Words.
    Text(String),
    /// A plain number.
    Count(u64),
    /// A length or offset in bytes.
    Bytes(u64),
    /// Seconds since 1970.
    Time(i64),
    /// Yes or no.
    Flag(bool),
    /// Several words.
    List(Vec<String>),
}

/// A fact about an image.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Fact {
    /// Stable key in `snake_case`, for scripts.
    pub key: &'static str,
    /// Label for people.
    pub label: &'static str,
    /// The value.
    pub value: FactValue,
}

/// Facts that `info` prints, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts(pub Vec<Fact>);

/// Serialized as a map from key to value.
#[cfg(feature = "serde")]
impl serde::Serialize for Facts {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|fact| (fact.key, &fact.value)))
    }
}

impl Facts {
    /// Adds one fact.
    pub fn push(&mut self, key: &'static str, label: &'static str, value: FactValue) {
        self.0.push(Fact { key, label, value });
    }

    /// Finds a fact by its key.
    pub fn get(&self, key: &str) -> Option<&FactValue> {
        self.0.iter().find(|fact| fact.key == key).map(|fact| &fact.value)
    }
}

/// Region of an image and its owner. Regions add up to the length of the image without overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SpaceOwner {
    /// Structure or file data that owns it, such as `superblock`, `file data`, `fragments`, `inode
    /// table`, `padding`, `unused`.
    pub owner: &'static str,
    /// Offset in the image, in bytes.
    pub offset: u64,
    /// Length in bytes.
    #[cfg_attr(feature = "serde", serde(rename = "size"))]
    pub len: u64,
}

/// Severity of a [`Finding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
pub enum Severity {
    /// An oddity that no reader is affected by.
    Note,
    /// Affects some readers.
    Warning,
    /// Violates the rules of the format.
    Error,
}

/// Violation of the format's rules, or data that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Finding {
    /// `error`, `warning` or `note`.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub severity: Severity,
    /// Path, or structure with its offset.
    pub place: String,
    /// Found and allowed values.
    pub fault: String,
}

impl Finding {
    /// Creates a finding.
    pub fn new(severity: Severity, place: impl Into<String>, fault: impl Into<String>) -> Self {
        Finding { severity, place: place.into(), fault: fault.into() }
    }
}
