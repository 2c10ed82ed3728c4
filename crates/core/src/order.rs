//! Order of small files in an image.

use crate::{Error, Goal, Result, parse_size};
use std::str::FromStr;

/// Order of small files that share blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Order {
    /// Tree order.
    Path,
    /// Sorted by extension, then by name.
    Kind,
    /// Similar files next to each other, which reads the files once more. The value is the number
    /// of bytes of small files in each range of the tree within which files move; `None` means as
    /// many as the format can read efficiently in tree order.
    Similarity(Option<u64>),
}

impl Order {
    /// Similar files next to each other, wherever they are in the tree.
    pub const EVERYWHERE: Order = Order::Similarity(Some(u64::MAX));

    /// Returns the default order for a goal.
    pub fn for_goal(goal: Goal) -> Self {
        match goal {
            // Reads in tree order then find the next file next to the last one.
            Goal::Read => Order::Path,
            Goal::Size => Order::EVERYWHERE,
            Goal::Balanced | Goal::Build => Order::default(),
        }
    }
}

impl Default for Order {
    fn default() -> Self {
        Order::Similarity(None)
    }
}

impl FromStr for Order {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(match (text, text.strip_prefix("similarity:")) {
            ("path", _) => Order::Path,
            ("kind", _) => Order::Kind,
            ("similarity", _) => Order::default(),
            (_, Some("all")) => Order::EVERYWHERE,
            (_, Some(size)) => Order::Similarity(Some(parse_size(size).map_err(Error::usage)?)),
            _ => {
                let allowed = "path, kind, similarity, similarity:SIZE or similarity:all";
                return Err(Error::usage(format!("unknown order {text:?}; use {allowed}")));
            }
        })
    }
}
