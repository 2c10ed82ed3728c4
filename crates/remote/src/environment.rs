//! The environment that settings and credentials come from.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Variables and the home directory, of this process or made up.
#[derive(Clone)]
pub struct Environment {
    variables: Option<Arc<BTreeMap<String, String>>>,
}

impl Environment {
    /// The environment of this process.
    pub fn of_process() -> Self {
        Environment { variables: None }
    }

    /// An environment of these variables alone.
    pub fn of<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let owned = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        Environment { variables: Some(Arc::new(owned.collect())) }
    }

    /// Returns the value of a variable; one that is empty counts as unset.
    pub fn get(&self, name: &str) -> Option<String> {
        let value = match &self.variables {
            Some(variables) => variables.get(name).cloned(),
            None => std::env::var(name).ok(),
        };
        value.filter(|value| !value.is_empty())
    }

    /// Returns the value of the first of these variables that is set.
    pub(crate) fn first(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| self.get(name))
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.parse().ok()
    }

    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value == "1" || value.eq_ignore_ascii_case("true"))
    }

    pub(crate) fn home(&self) -> Option<PathBuf> {
        self.get("HOME").map(PathBuf::from)
    }

    /// Returns the folder of the cache, by the XDG Base Directory Specification.
    pub fn cache_dir(&self) -> Option<PathBuf> {
        // The specification has relative paths ignored.
        let base = self.get("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let base = base.or_else(|| Some(self.home()?.join(".cache")));
        base.map(|base| base.join("packfs"))
    }
}

/// Values may be secrets.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.variables.is_some() { "Environment(made up)" } else { "Environment(process)" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_lies_where_xdg_puts_it() {
        let dir = |variables: &[(&str, &str)]| Environment::of(variables.iter().copied()).cache_dir();
        assert_eq!(dir(&[("XDG_CACHE_HOME", "/c"), ("HOME", "/h")]), Some("/c/packfs".into()));
        assert_eq!(dir(&[("XDG_CACHE_HOME", "c"), ("HOME", "/h")]), Some("/h/.cache/packfs".into()));
        assert_eq!(dir(&[("XDG_CACHE_HOME", "")]), None);
    }

    #[test]
    fn values_are_not_shown() {
        let environment = Environment::of([("AWS_SECRET_ACCESS_KEY", "secret")]);
        assert!(!format!("{environment:?}").contains("secret"));
    }
}
