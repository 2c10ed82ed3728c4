//! Fitting by trial: any encoder can fill an output, at the cost of several runs.

use crate::{EncodeError, Encoder, Fit, FitEncoder};

/// Searches the longest input that an encoder fits into the output.
pub(crate) struct Bisection {
    encoder: Box<dyn Encoder>,
    best: Vec<u8>,
}

impl Bisection {
    pub(crate) fn new(encoder: Box<dyn Encoder>) -> Bisection {
        Bisection { encoder, best: Vec::new() }
    }
}

impl FitEncoder for Bisection {
    fn compress_to_fit(&mut self, src: &[u8], dst: &mut [u8]) -> Result<Fit, EncodeError> {
        let mut best = Fit::default();
        let mut too_long = src.len() + 1;
        let mut consumed = src.len().min(dst.len().saturating_mul(4));
        while consumed > best.consumed {
            match self.encoder.compress(&src[..consumed], dst)? {
                Some(written) => {
                    best = Fit { consumed, written };
                    self.best.clear();
                    self.best.extend_from_slice(&dst[..written]);
                    if written == dst.len() || consumed == src.len() {
                        break;
                    }
                }
                None => too_long = consumed,
            }
            consumed = if too_long > src.len() {
                src.len().min(best.consumed.saturating_mul(2))
            } else {
                best.consumed + (too_long - best.consumed) / 2
            };
        }
        dst[..best.written].copy_from_slice(&self.best[..best.written]);
        Ok(best)
    }
}
