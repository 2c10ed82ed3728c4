//! Reports on an image: facts for `info`, owners of its bytes for `info --space`, findings of
//! `check`.

/// The value of a [`Fact`], typed so that JSON keeps numbers as numbers.
#[derive(Clone, Debug, PartialEq)]
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

/// One thing known about an image.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// Stable key in `snake_case`, for scripts.
    pub key: &'static str,
    /// Label for people.
    pub label: &'static str,
    /// The value.
    pub value: FactValue,
}

/// Everything `info` prints of an image, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts(pub Vec<Fact>);

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

/// A range of an image and the structure that owns it. All owners of an image add up to its length
/// without overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpaceOwner {
    /// The structure that owns the bytes, such as `superblock`, `file data`, `fragments`, `inode
    /// table`, `padding`, `unused`.
    pub owner: &'static str,
    /// Its start, in bytes from the start of the file.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
}

/// Severity of a [`Finding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Odd, but every reader copes.
    Note,
    /// Some readers will stumble.
    Warning,
    /// The image breaks the rules of its format.
    Error,
}

/// Something `check` found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its severity.
    pub severity: Severity,
    /// Its place, such as a path or a structure with its offset.
    pub place: String,
    /// The fault: found and allowed values.
    pub fault: String,
}
