//! Numbers that look random and are the same in every run.

/// A `splitmix64` generator: small, even, and its whole state is the seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Starts from a seed.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// The next 64 bits.
    #[allow(clippy::should_implement_trait, reason = "it never ends and never says None")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which must not be 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Bytes that do not compress.
    pub fn noise(&mut self, len: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..len.div_ceil(8)).flat_map(|_| self.next().to_le_bytes()).collect();
        bytes.truncate(len);
        bytes
    }

    /// Words and lines that compress about as text does.
    pub fn text(&mut self, len: usize) -> Vec<u8> {
        const WORDS: [&str; 16] = [
            "inode ",
            "block ",
            "of ",
            "the ",
            "table\n",
            "offset ",
            "0x",
            "fragment ",
            "is ",
            "not ",
            "a ",
            "hole\n",
            "size: ",
            "and ",
            "kernel ",
            "reads\n",
        ];
        let mut bytes = Vec::with_capacity(len + 16);
        while bytes.len() < len {
            bytes.extend_from_slice(WORDS[self.below(16) as usize].as_bytes());
            if self.below(8) == 0 {
                bytes.extend_from_slice(self.below(10_000).to_string().as_bytes());
            }
        }
        bytes.truncate(len);
        bytes
    }
}
