//! Findings of one kind, told together.

/// Counts what would be tiresome to hear of one by one, and tells it once with an example.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    count: u64,
    example: String,
}

impl Tally {
    /// Counts one; `example` is only asked for the first.
    pub fn add(&mut self, example: impl FnOnce() -> String) {
        if self.count == 0 {
            self.example = example();
        }
        self.count = self.count.saturating_add(1);
    }

    /// The sentence to tell, if there is anything to.
    pub fn one_line(&self, what: &str) -> Option<String> {
        match self.count {
            0 => None,
            1 => Some(format!("{what}: {}", self.example)),
            count => Some(format!("{what}: {count} of them, the first is {}", self.example)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_the_number_and_the_first() {
        let mut tally = Tally::default();
        assert_eq!(tally.one_line("holes"), None);
        tally.add(|| "a".into());
        assert_eq!(tally.one_line("holes").unwrap(), "holes: a");
        tally.add(|| "b".into());
        assert_eq!(tally.one_line("holes").unwrap(), "holes: 2 of them, the first is a");
    }
}
