//! How much compressing has to save to be worth what decoding costs every reader.

/// The least share that compressing has to take off a block, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gain(u8);

impl Gain {
    /// One byte is enough.
    pub const ANY: Gain = Gain(0);

    /// So many percent; `None` for half or more, which nearly nothing saves.
    pub fn percent(percent: u8) -> Option<Gain> {
        (percent < 50).then_some(Gain(percent))
    }

    /// Most bytes that a block of `len` bytes may take compressed: fewer than it has, in any case.
    pub(crate) fn room(self, len: usize) -> usize {
        let least = (len as u64 * u64::from(self.0)).div_ceil(100) as usize;
        len - least.max(1).min(len)
    }

    /// Whether `input` bytes in `space` bytes are few enough, where as many bytes as there are in
    /// the input may be taken.
    pub(crate) fn holds(self, input: usize, space: usize) -> bool {
        space as u64 * 100 <= input as u64 * u64::from(100 - self.0)
    }
}

impl Default for Gain {
    /// 3 %: below it lies what is compressed already.
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
