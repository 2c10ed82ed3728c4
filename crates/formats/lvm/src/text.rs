//! The text that describes a group: names with values, lists, and sections.
//!
//! Invariant: the depth of sections is bounded, and each byte is read once.

use crate::corruption::Corruption;
use packfs_format::units::*;

/// Deepest section: group, volumes, volume, segment.
const DEPTH_MAX: usize = 8;
/// Limit of values: ten thousand volumes have fewer.
const VALUES_MAX: usize = 1 << 19;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Number(u64),
    Text(String),
    List(Vec<Value>),
    Section(Section),
}

/// Names with their values, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Section(pub(crate) Vec<(String, Value)>);

impl Section {
    /// Errors: the offset of a syntax error.
    pub(crate) fn parse(text: &[u8]) -> Result<Section, Corruption> {
        let mut parser = Parser { text, at: 0, values: 0 };
        parser.section(0)
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, value)| value)
    }

    pub(crate) fn number(&self, name: &'static str) -> Result<u64, Corruption> {
        match self.get(name) {
            Some(Value::Number(number)) => Ok(*number),
            _ => Err(Corruption::Missing { what: name }),
        }
    }

    pub(crate) fn text(&self, name: &'static str) -> Result<&str, Corruption> {
        match self.get(name) {
            Some(Value::Text(text)) => Ok(text),
            _ => Err(Corruption::Missing { what: name }),
        }
    }

    pub(crate) fn list(&self, name: &'static str) -> Result<&[Value], Corruption> {
        match self.get(name) {
            Some(Value::List(list)) => Ok(list),
            _ => Err(Corruption::Missing { what: name }),
        }
    }

    /// Returns the sections within one of this name; empty without it.
    pub(crate) fn sections(&self, name: &str) -> impl Iterator<Item = (&str, &Section)> {
        let inner = match self.get(name) {
            Some(Value::Section(section)) => section.0.as_slice(),
            _ => &[],
        };
        inner.iter().filter_map(|(name, value)| match value {
            Value::Section(section) => Some((name.as_str(), section)),
            _ => None,
        })
    }
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    values: usize,
}

impl Parser<'_> {
    fn fault(&self) -> Corruption {
        Corruption::Syntax { at: self.at }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied().filter(|byte| *byte != 0)
    }

    fn take(&mut self) {
        self.at = self.at.plus(1);
    }

    /// Skips blanks and comments, and returns the next byte.
    fn next(&mut self) -> Option<u8> {
        while let Some(byte) = self.peek() {
            match byte {
                b'#' => {
                    while self.peek().is_some_and(|byte| byte != b'\n') {
                        self.take();
                    }
                }
                _ if byte.is_ascii_whitespace() => self.take(),
                _ => return Some(byte),
            }
        }
        None
    }

    /// Consumes this byte, if it is next.
    fn takes(&mut self, wanted: u8) -> bool {
        let is_next = self.next() == Some(wanted);
        if is_next {
            self.take();
        }
        is_next
    }

    /// Parses names up to the brace at the end of the section; up to the end of the text at depth
    /// 0.
    fn section(&mut self, depth: usize) -> Result<Section, Corruption> {
        let mut section = Section::default();
        self.count()?;
        if depth > DEPTH_MAX {
            return Err(self.fault());
        }
        loop {
            match self.next() {
                None if depth == 0 => return Ok(section),
                Some(b'}') if depth > 0 => {
                    self.take();
                    return Ok(section);
                }
                _ => {}
            }
            let name = self.name()?;
            let value = if self.takes(b'{') {
                Value::Section(self.section(depth.plus(1))?)
            } else if self.takes(b'=') {
                self.value(true)?
            } else {
                return Err(self.fault());
            };
            section.0.push((name, value));
        }
    }

    fn name(&mut self) -> Result<String, Corruption> {
        let mut name = String::new();
        while let Some(byte) =
            self.peek().filter(|byte| byte.is_ascii_alphanumeric() || b"_.+-@/".contains(byte))
        {
            name.push(char::from(byte));
            self.take();
        }
        if name.is_empty() { Err(self.fault()) } else { Ok(name) }
    }

    fn value(&mut self, may_be_list: bool) -> Result<Value, Corruption> {
        self.count()?;
        match self.next() {
            Some(b'"') => self.quoted().map(Value::Text),
            Some(b'[') if may_be_list => {
                self.take();
                let mut list = Vec::new();
                while !self.takes(b']') {
                    list.push(self.value(false)?);
                    if !self.takes(b',') && self.next() != Some(b']') {
                        return Err(self.fault());
                    }
                }
                Ok(Value::List(list))
            }
            // Other values, such as fractions, are not used and remain text.
            _ => self.name().map(|word| word.parse().map_or(Value::Text(word), Value::Number)),
        }
    }

    fn count(&mut self) -> Result<(), Corruption> {
        self.values = self.values.plus(1);
        if self.values > VALUES_MAX {
            return Err(Corruption::Values { max: VALUES_MAX });
        }
        Ok(())
    }

    fn quoted(&mut self) -> Result<String, Corruption> {
        let mut bytes = Vec::new();
        self.take();
        loop {
            let mut byte = self.peek().ok_or_else(|| self.fault())?;
            self.take();
            match byte {
                b'"' => return Ok(packfs_core::escaped(&bytes).to_string()),
                b'\\' => {
                    byte = self.peek().ok_or_else(|| self.fault())?;
                    self.take();
                }
                _ => {}
            }
            bytes.push(byte);
        }
    }
}
