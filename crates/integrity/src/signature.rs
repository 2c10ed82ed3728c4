//! Detached signatures in the format of minisign: Ed25519 of the BLAKE2b-512 hash of a file, and of
//! a comment.
//!
//! Compatible with `minisign -V` and `minisign -S`. Files are read once, in bounded memory.
//! Signatures in minisign's legacy format, over the whole file instead of its hash, are refused.

use crate::reader::ImageReader;
use ct_codecs::{Base64, Decoder};
use minisign::{KeyPair, PError, PublicKey, PublicKeyBox, SecretKey, SecretKeyBox, SignatureBox};
use packfs_core::{Error, Image, Progress, Result, Stage, escaped};
use std::fs::File;

/// Base64 digits of a signature with its algorithm and key, and of the signature of the comment.
const SIGNATURE_DIGITS: [usize; 2] = [100, 88];
/// Base64 digits of a secret key.
const SECRET_KEY_DIGITS: usize = 212;
/// First digits of a secret key without a password: its algorithms.
const NO_PASSWORD: &str = "RWQAAEIy";

/// Bytes of the checksum at the end of a secret key.
const CHECKSUM_LEN: usize = 32;

/// A new pair of keys, each as the text of its file.
#[non_exhaustive]
pub struct NewKeys {
    /// The secret key.
    pub secret: String,
    /// The public key.
    pub public: String,
}

/// Accepts keys without a password whose checksum is zeros, as created by `minisign -G -W`.
fn unchecked(digits: &str) -> std::result::Result<SecretKey, PError> {
    let corrupted = || PError::new(minisign::ErrorKind::Verify, "corrupted key");
    let bytes = Base64::decode_to_vec(digits, None).map_err(|_| corrupted())?;
    let is_bare = bytes.last_chunk::<CHECKSUM_LEN>().is_some_and(|sum| *sum == [0; CHECKSUM_LEN]);
    if is_bare { SecretKey::from_bytes(&bytes) } else { Err(corrupted()) }
}

/// Creates a pair of keys; the secret one is encrypted if a password is given.
///
/// Errors: `Failed` without a source of random numbers.
pub fn new_signing_keys(password: Option<String>) -> Result<NewKeys> {
    let make = || -> std::result::Result<NewKeys, PError> {
        let pair = match password {
            Some(password) => KeyPair::generate_encrypted_keypair(Some(password))?,
            None => KeyPair::generate_unencrypted_keypair()?,
        };
        let secret = pair.sk.to_box(None)?.into_string();
        Ok(NewKeys { secret, public: pair.pk.to_box()?.into_string() })
    };
    make().map_err(|error| Error::failed(format!("cannot create keys: {error}")))
}

/// A secret key, ready to sign.
pub struct SigningKey(SecretKey);

impl SigningKey {
    /// Reads the text of a key's file; `password` is called if the key is encrypted.
    ///
    /// Errors: `Failed` for an invalid key or a wrong password; those of `password`.
    pub fn read(text: &str, password: impl FnOnce() -> Result<String>) -> Result<Self> {
        let boxed = || SecretKeyBox::from_string(text);
        if let Ok(key) = boxed().and_then(SecretKeyBox::into_unencrypted_secret_key) {
            return Ok(SigningKey(key));
        }
        let cannot = |error: PError| Error::failed(format!("cannot use the secret key: {error}"));
        // An invalid text is refused without asking for a password.
        let digits = text.lines().nth(1).map(str::trim).filter(|line| line.len() == SECRET_KEY_DIGITS);
        let Some(digits) = digits else {
            return Err(Error::failed("cannot use the secret key: not a minisign key"));
        };
        if digits.starts_with(NO_PASSWORD) {
            return unchecked(digits).map(SigningKey).map_err(cannot);
        }
        let key = boxed().map_err(cannot)?.into_secret_key(Some(password()?)).map_err(cannot)?;
        Ok(SigningKey(key))
    }

    /// Signs a file and the comment; returns the text of the signature's file.
    ///
    /// Errors: `Usage` for a comment of several lines; `Io`, `Cancelled`.
    pub fn sign(&self, image: &dyn Image, comment: &str, progress: &dyn Progress) -> Result<String> {
        if comment.chars().any(|c| c == '\n' || c == '\r') {
            return Err(Error::usage("cannot sign: the comment has more than one line"));
        }
        progress.begin(Stage::Hash, 1, image.len());
        let mut reader = ImageReader::new(image, None, progress);
        let signed = minisign::sign(None, &self.0, &mut reader, Some(comment), Some("signature by packfs"));
        reader.outcome()?;
        let signed = signed.map_err(|error| Error::failed(format!("cannot sign: {error}")))?;
        Ok(signed.into_string())
    }
}

/// A key that signatures are verified with.
pub struct VerifyingKey(PublicKey);

impl VerifyingKey {
    /// Reads the text of a key's file, or its second line alone.
    ///
    /// Errors: `Usage` for an invalid key.
    pub fn read(text: &str) -> Result<Self> {
        let text = text.trim();
        let key = match text.lines().count() {
            1 => PublicKey::from_base64(text),
            _ => PublicKeyBox::from_string(text).and_then(PublicKeyBox::into_public_key),
        };
        key.map(VerifyingKey)
            .map_err(|error| Error::usage(format!("cannot use the public key: not a minisign key: {error}")))
    }

    /// Returns the key id, as `minisign` prints it.
    pub fn id(&self) -> String {
        id(self.0.keynum())
    }

    /// Verifies a file and returns the signed comment. The verified bytes are copied to `copy`, so
    /// that no others are used afterwards.
    ///
    /// Errors: `Corrupt` if the signature is invalid, or of another file; `Failed` if it was made
    /// with another key; `Unsupported` for legacy ones; `Io`, `Cancelled`.
    pub fn verify(
        &self,
        image: &dyn Image,
        signature: &str,
        copy: Option<&File>,
        progress: &dyn Progress,
    ) -> Result<String> {
        let none = |why: &str| Error::corrupt("signature", format!("not a minisign signature: {why}"));
        let mut lines = signature.lines();
        // The second and the fourth line are decoded only if they have the right length.
        for digits in SIGNATURE_DIGITS {
            if lines.nth(1).is_none_or(|line| line.trim().len() != digits) {
                return Err(none("a line is missing or has another length"));
            }
        }
        let signature = SignatureBox::from_string(signature).map_err(|error| none(&error.to_string()))?;
        if !signature.is_prehashed() {
            return Err(Error::unsupported("signature", "legacy minisign format, over the whole file"));
        }
        if signature.keynum() != self.0.keynum() {
            let (theirs, ours) = (id(signature.keynum()), self.id());
            return Err(Error::failed(format!(
                "cannot verify with key {ours}: the signature was made with key {theirs}"
            )));
        }
        progress.begin(Stage::Verify, 1, image.len());
        let mut reader = ImageReader::new(image, copy, progress);
        let verified = minisign::verify(&self.0, &signature, &mut reader, true, false, false);
        reader.outcome()?;
        verified.map_err(|_| {
            Error::corrupt("image", format!("{} is not what was signed with key {}", image.name(), self.id()))
        })?;
        let comment = signature.trusted_comment().map_err(|error| none(&error.to_string()))?;
        // A tab between parts of the comment is harmless.
        let parts: Vec<String> =
            comment.split('\t').map(|part| escaped(part.as_bytes()).to_string()).collect();
        Ok(parts.join("\t"))
    }
}

fn id(number: &[u8]) -> String {
    number.iter().rev().map(|byte| format!("{byte:02X}")).collect()
}
