//! The variables of one row, and templates that name them.

use toml::Value;

use super::document::Variables;
use crate::results::Cell;

/// Variables that come from the user: braces in them are no template.
const LITERAL: [&str; 2] = ["tree", "device"];

#[derive(Clone, Debug, Default)]
pub(super) struct Row(pub Variables);

impl Row {
    pub(super) fn with(&self, variables: Variables) -> Self {
        let mut row = self.clone();
        row.0.extend(variables);
        row
    }

    pub(super) fn set(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// Replaces `{VARIABLE}` in a template; none if one is not there.
    pub(super) fn fill(&self, template: &str) -> Option<String> {
        let mut parts = template.split('{');
        let mut filled = parts.next()?.to_owned();
        for part in parts {
            let (name, rest) = part.split_once('}')?;
            filled += &self.text(name)?;
            filled += rest;
        }
        Some(filled)
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        match self.variable(name)? {
            Value::String(text) if LITERAL.contains(&name) => Some(text.clone()),
            Value::String(text) => self.fill(text),
            Value::Integer(number) => Some(number.to_string()),
            _ => None,
        }
    }

    /// Returns a variable as a cell: `NAME`, or `NAME UNIT`.
    pub(super) fn cell(&self, quote: &str) -> Cell {
        let (name, unit) = quote.split_once(' ').map_or((quote, 1.0), |(name, unit)| (name, unit_len(unit)));
        match self.variable(name) {
            None => Cell::Empty,
            Some(Value::String(text)) => match with_unit(text) {
                Some(figure) => Cell::exact(figure),
                None => Cell::Text(text.clone()),
            },
            Some(value) => number(value).map_or(Cell::Empty, |number| Cell::exact(number * unit)),
        }
    }

    pub(super) fn figure(&self, name: &str) -> f64 {
        self.variable(name).and_then(number).unwrap_or_default()
    }

    /// Finds a variable, or a part of one by its number: `packing.{jobs}`.
    fn variable(&self, name: &str) -> Option<&Value> {
        let name = if name.contains('{') { self.fill(name)? } else { name.to_owned() };
        if let Some(value) = self.0.get(&name) {
            return Some(value);
        }
        let (list, place) = name.rsplit_once('.')?;
        self.0.get(list)?.get(place.parse::<usize>().ok()?)
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        Value::Array(list) => list.iter().filter_map(number).min_by(f64::total_cmp),
        _ => None,
    }
}

/// Reads a figure as documents print it: `1.2 GiB`.
fn with_unit(text: &str) -> Option<f64> {
    let (number, unit) = text.split_once(' ')?;
    Some(number.parse::<f64>().ok()? * unit_len(unit))
}

fn unit_len(unit: &str) -> f64 {
    match unit {
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        "MB" => 1e6,
        _ => 1.0,
    }
}
