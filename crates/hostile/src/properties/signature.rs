//! Properties of any signature and any key.

use crate::Breach;
use crate::corpus::{SIGNED, SIGNED_COMMENT, SIGNERS_KEY};
use packfs::MemoryImage;
use packfs::integrity::VerifyingKey;
use packfs::{ErrorKind, Silent};

/// Longest input that is tried: no file of either kind is longer.
const INPUT_LEN_MAX: usize = 64 << 10;

/// A key is read or refused, and so is a signature; nothing but what the key of the corpus signed
/// is ever taken for that. What stands before the first zero byte is the key, what stands after it
/// the signature.
///
/// # Errors
/// A [`Breach`].
pub fn signature(input: &[u8]) -> Result<(), Breach> {
    if input.len() > INPUT_LEN_MAX {
        return Ok(());
    }
    let Ok(text) = std::str::from_utf8(input) else { return Ok(()) };
    let (key_text, signature) = text.split_once('\0').unwrap_or((text, text));
    let key = match VerifyingKey::read(key_text) {
        Ok(key) => key,
        Err(error) if error.kind() == ErrorKind::Usage => return Ok(()),
        Err(error) => return Err(Breach::NotTheInput(error.to_string())),
    };
    let is_signers = key_text.lines().any(|line| line.trim() == SIGNERS_KEY);
    let other = MemoryImage::new("another file", [SIGNED, b"!"].concat());
    if key.verify(&other, signature, None, &Silent).is_ok() && is_signers {
        return Err(Breach::Integrity("a signature of what was never signed".into()));
    }
    let signed = MemoryImage::new("the signed file", SIGNED.to_vec());
    match key.verify(&signed, signature, None, &Silent) {
        Ok(comment) if is_signers && comment != SIGNED_COMMENT => {
            Err(Breach::Integrity(format!("a comment that was never signed: {comment:?}")))
        }
        Ok(_) => Ok(()),
        Err(error) => match error.kind() {
            ErrorKind::Corrupt | ErrorKind::Unsupported | ErrorKind::Failed => Ok(()),
            _ => Err(Breach::NotTheInput(error.to_string())),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::inputs;
    use crate::properties::Input;

    #[test]
    fn the_corpus_holds_a_signature_that_is_right() {
        let base = &inputs(Input::Signature).unwrap()[0];
        let (key, signature) = std::str::from_utf8(&base.bytes).unwrap().split_once('\0').unwrap();
        let signed = MemoryImage::new("the signed file", SIGNED.to_vec());
        let verified = VerifyingKey::read(key).unwrap().verify(&signed, signature, None, &Silent);
        assert_eq!(verified.unwrap(), SIGNED_COMMENT);
    }
}
