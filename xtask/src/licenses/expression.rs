//! License expressions of crates.
//!
//! Source: SPDX 2.3, annex D, and the older `MIT/Apache-2.0`, which cargo accepts, with a slash for
//! OR.

/// A license, or several that are joined by OR or AND.
#[derive(Debug, PartialEq)]
pub enum Expression {
    /// Name of a license with its exception, such as `Apache-2.0 WITH LLVM-exception`.
    License(String),
    Any(Vec<Self>),
    All(Vec<Self>),
}

impl Expression {
    /// Parses an expression.
    ///
    /// Errors: a description of the fault.
    pub fn parse(text: &str) -> Result<Self, String> {
        let spaced = text.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
        let mut words = Words { words: spaced.split_whitespace().collect(), next: 0 };
        let expression = words.any()?;
        match words.peek() {
            Some(word) => Err(format!("unexpected {word:?}")),
            None => Ok(expression),
        }
    }

    /// Returns true if the `allowed` licenses satisfy the expression.
    pub fn is_satisfied(&self, allowed: &[String]) -> bool {
        match self {
            Self::License(name) => allowed.contains(name),
            Self::Any(parts) => parts.iter().any(|part| part.is_satisfied(allowed)),
            Self::All(parts) => parts.iter().all(|part| part.is_satisfied(allowed)),
        }
    }
}

struct Words<'a> {
    words: Vec<&'a str>,
    next: usize,
}

impl<'a> Words<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.next).copied()
    }

    fn take(&mut self) -> Option<&'a str> {
        let word = self.peek();
        self.next += 1;
        word
    }

    fn take_if(&mut self, wanted: &str) -> bool {
        let found = self.peek() == Some(wanted);
        self.next += usize::from(found);
        found
    }

    /// Parses parts joined by OR, which binds less than AND.
    fn any(&mut self) -> Result<Expression, String> {
        let mut parts = vec![self.all()?];
        while self.take_if("OR") {
            parts.push(self.all()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expression::Any(parts) })
    }

    fn all(&mut self) -> Result<Expression, String> {
        let mut parts = vec![self.part()?];
        while self.take_if("AND") {
            parts.push(self.part()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expression::All(parts) })
    }

    fn part(&mut self) -> Result<Expression, String> {
        if self.take_if("(") {
            let inner = self.any()?;
            return if self.take_if(")") { Ok(inner) } else { Err("a parenthesis is not closed".to_owned()) };
        }
        let name = self.name()?;
        if self.take_if("WITH") {
            let exception = self.name()?;
            return Ok(Expression::License(format!("{name} WITH {exception}")));
        }
        Ok(Expression::License(name.to_owned()))
    }

    fn name(&mut self) -> Result<&'a str, String> {
        match self.take() {
            Some(word) if !matches!(word, "OR" | "AND" | "WITH" | "(" | ")") => Ok(word),
            Some(word) => Err(format!("{word:?} in place of a license")),
            None => Err("it ends where a license was expected".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn satisfied(text: &str) -> bool {
        let allowed = ["MIT", "Apache-2.0", "BSD-3-Clause", "Apache-2.0 WITH LLVM-exception"];
        Expression::parse(text).unwrap().is_satisfied(&allowed.map(str::to_owned))
    }

    #[test]
    fn needs_one_side_of_or_and_both_sides_of_and() {
        assert!(satisfied("MIT"));
        assert!(satisfied("GPL-2.0-only OR MIT"));
        assert!(satisfied("MIT AND BSD-3-Clause"));
        assert!(!satisfied("MIT AND GPL-2.0-only"));
        assert!(!satisfied("GPL-2.0-only OR LGPL-3.0-only"));
    }

    #[test]
    fn binds_and_tighter_than_or() {
        assert!(satisfied("MIT OR BSD-3-Clause AND GPL-2.0-only"));
        assert!(!satisfied("(MIT OR BSD-3-Clause) AND GPL-2.0-only"));
        assert!(satisfied("(MIT OR GPL-2.0-only) AND BSD-3-Clause"));
    }

    #[test]
    fn takes_an_exception_as_part_of_its_license() {
        assert!(satisfied("Apache-2.0 WITH LLVM-exception"));
        assert!(!satisfied("MIT WITH LLVM-exception"));
    }

    #[test]
    fn reads_a_slash_as_or() {
        assert!(satisfied("MIT/GPL-2.0-only"));
    }

    #[test]
    fn refuses_what_is_no_expression() {
        for text in ["", "MIT OR", "AND MIT", "(MIT", "MIT)", "MIT Apache-2.0", "MIT WITH", "()"] {
            assert!(Expression::parse(text).is_err(), "{text:?}");
        }
    }
}
