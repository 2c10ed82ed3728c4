//! A cheap guess whether bytes can be compressed at all, from how often each value occurs.
//!
//! Blind to repetitions of long strings: who asks must try the real encoder now and then.

/// Shorter runs say nothing.
const LEN_MIN: usize = 256;

/// Whether the values are spread as evenly as those of compressed or encrypted data.
pub(super) fn looks_incompressible(bytes: &[u8]) -> bool {
    if bytes.len() < LEN_MIN {
        return false;
    }
    // Two tables: equal neighbours would otherwise wait for each other.
    let mut counts = [[0u32; 256]; 2];
    for pair in bytes.chunks_exact(2) {
        counts[0][usize::from(pair[0])] += 1;
        counts[1][usize::from(pair[1])] += 1;
    }
    let [even, odd] = &counts;
    let squares: u64 = even.iter().zip(odd).map(|(a, b)| u64::from(a + b).pow(2)).sum();
    // Even spread gives n + n(n-1)/256 on average, with little deviation; a tenth more is still no gain to speak of.
    let len = (bytes.len() & !1) as u64;
    squares * 10 < (len + len * (len - 1) / 256) * 11
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_testkit::Random;

    #[test]
    fn tells_noise_from_text_and_from_almost_noise() {
        let mut random = Random::new(1);
        for len in [256, 512, 4096, 65_537] {
            assert!(looks_incompressible(&random.noise(len)), "{len}");
            assert!(!looks_incompressible(&random.text(len)), "{len}");
            let seven_bits: Vec<u8> = random.noise(len).iter().map(|byte| byte & 0x7f).collect();
            assert!(!looks_incompressible(&seven_bits), "{len}");
        }
        assert!(!looks_incompressible(&random.noise(255)));
    }
}
