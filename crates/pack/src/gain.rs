//! Least saving for which data is stored compressed, because decoding costs every reader time.

/// Least saving of a compressed block, in percent of its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gain(u8);

impl Gain {
    /// A saving of one byte is enough.
    pub const ANY: Gain = Gain(0);

    /// Returns a gain of `percent`; `None` for 50 or more, which hardly any data saves.
    pub fn percent(percent: u8) -> Option<Gain> {
        (percent < 50).then_some(Gain(percent))
    }

    /// Always less than `len`.
    pub(crate) fn room(self, len: usize) -> usize {
        let least = (len as u64 * u64::from(self.0)).div_ceil(100) as usize;
        len - least.max(1).min(len)
    }

    /// Accepts equal lengths with [`Gain::ANY`].
    pub(crate) fn holds(self, input: usize, space: usize) -> bool {
        space as u64 * 100 <= input as u64 * u64::from(100 - self.0)
    }
}

impl Default for Gain {
    /// 3 %: data that saves less is compressed already.
    fn default() -> Self {
        Gain(3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn something_is_to_be_saved_in_any_case() {
        assert_eq!(Gain::ANY.room(1000), 999);
        assert_eq!(Gain::default().room(1000), 970);
        assert_eq!(Gain::default().room(1), 0);
        assert_eq!(Gain::default().room(0), 0);
        assert!(Gain::ANY.holds(10, 10) && !Gain::ANY.holds(10, 11));
        assert!(Gain::default().holds(1000, 970) && !Gain::default().holds(1000, 971));
        assert_eq!(Gain::percent(50), None);
    }
}
