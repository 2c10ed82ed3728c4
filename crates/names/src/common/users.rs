//! Names of users and groups, from the files of this machine.

use packfs::{Error, Result};
use std::collections::HashMap;

#[derive(Debug, Default)]
pub struct Ids {
    by_id: HashMap<u32, String>,
    by_name: HashMap<String, u32>,
    what: &'static str,
}

impl Ids {
    pub fn users() -> Self {
        Ids::read("/etc/passwd", "user")
    }

    pub fn groups() -> Self {
        Ids::read("/etc/group", "group")
    }

    fn read(path: &str, what: &'static str) -> Self {
        let text = std::fs::read(path).unwrap_or_default();
        let mut ids = Ids { what, ..Ids::default() };
        for line in String::from_utf8_lossy(&text).lines() {
            let mut fields = line.split(':');
            let (name, id) = (fields.next().unwrap_or_default(), fields.nth(1));
            let Some(id) = id.and_then(|id| id.parse().ok()) else { continue };
            ids.by_id.entry(id).or_insert_with(|| name.to_owned());
            ids.by_name.entry(name.to_owned()).or_insert(id);
        }
        ids
    }

    /// Accepts a number or a name.
    ///
    /// Errors: `Usage` for an unknown name.
    pub fn id(&self, text: &str) -> Result<u32> {
        if let Ok(id) = text.trim_ascii_start().parse() {
            return Ok(id);
        }
        let known = self.by_name.get(text).copied();
        known.ok_or_else(|| Error::usage(format!("{text:?} is neither an id nor a known {}", self.what)))
    }

    /// Digits for an unknown id.
    pub fn name(&self, id: u32) -> String {
        self.by_id.get(&id).cloned().unwrap_or_else(|| id.to_string())
    }
}
