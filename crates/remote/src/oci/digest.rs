//! Digests of blobs, and readers that verify them.

use packfs_core::{Error, Result, to_hex};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256, Sha512};
use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

/// Digest of a blob, such as `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(String);

impl Digest {
    /// Returns the SHA-256 digest of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut hashing = Hashing::sha256();
        hashing.update(bytes);
        hashing.finish()
    }

    /// Returns the algorithm and the hexadecimal digits.
    pub fn parts(&self) -> (&str, &str) {
        self.0.split_once(':').unwrap_or_default()
    }

    /// Returns the place of the blob in an image layout.
    pub fn blob_path(&self) -> String {
        let (algorithm, hex) = self.parts();
        format!("blobs/{algorithm}/{hex}")
    }

    // By the algorithm of this one.
    pub(crate) fn found_in(&self, bytes: &[u8]) -> Self {
        let mut hashing = self.hashing();
        hashing.update(bytes);
        hashing.finish()
    }

    // By the algorithm of this digest.
    pub(crate) fn hashing(&self) -> Hashing {
        match self.parts().0 {
            "sha512" => Hashing::Sha512(Box::default()),
            _ => Hashing::sha256(),
        }
    }
}

impl FromStr for Digest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (algorithm, hex) = text.split_once(':').unwrap_or_default();
        let len = match algorithm {
            "sha256" => 64,
            "sha512" => 128,
            _ => 0,
        };
        let is_hex = hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if len == 0 || hex.len() != len || !is_hex {
            let shown: String = text.chars().take(80).collect();
            return Err(Error::usage(format!(
                "digest {shown:?}: sha256: with 64, or sha512: with 128 lower-case hexadecimal digits is allowed"
            )));
        }
        Ok(Digest(text.to_owned()))
    }
}

impl TryFrom<String> for Digest {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> String {
        digest.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Hash of bytes that come in parts.
#[derive(Clone)]
pub enum Hashing {
    /// SHA-256.
    Sha256(Box<Sha256>),
    /// SHA-512.
    Sha512(Box<Sha512>),
}

impl Hashing {
    /// Starts with SHA-256.
    pub fn sha256() -> Self {
        Hashing::Sha256(Box::default())
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Hashing::Sha256(state) => state.update(bytes),
            Hashing::Sha512(state) => state.update(bytes),
        }
    }

    /// Returns the digest.
    pub fn finish(self) -> Digest {
        let (name, bytes): (_, Vec<u8>) = match self {
            Hashing::Sha256(state) => ("sha256", state.finalize().to_vec()),
            Hashing::Sha512(state) => ("sha512", state.finalize().to_vec()),
        };
        Digest(format!("{name}:{}", to_hex(&bytes)))
    }
}

/// Reader that compares length and digest of its bytes when it ends. The error of a difference is
/// an [`Error`] inside the [`io::Error`].
pub struct Verified<R> {
    reader: R,
    hashing: Option<Hashing>,
    digest: Digest,
    size: Option<u64>,
    seen: u64,
    name: String,
    /// Difference found, which every further read tells again.
    fault: Option<Error>,
}

impl<R: Read> Verified<R> {
    /// Verifies bytes with this digest, and this length if it is known; `name` is for messages.
    pub fn new(reader: R, digest: Digest, size: Option<u64>, name: impl Into<String>) -> Self {
        let hashing = Some(digest.hashing());
        Verified { reader, hashing, digest, size, seen: 0, name: name.into(), fault: None }
    }

    fn fault(&mut self, fault: String) -> io::Error {
        let error = Error::corrupt(&self.name, fault).hint("fetch or build the image again");
        self.fault = Some(error.clone());
        io::Error::new(io::ErrorKind::InvalidData, error)
    }

    fn end(&mut self) -> io::Result<()> {
        if let Some(size) = self.size.filter(|&size| size != self.seen) {
            let fault = format!("it ends after {} bytes, {size} are expected", self.seen);
            return Err(self.fault(fault));
        }
        let Some(hashing) = self.hashing.take() else { return Ok(()) };
        let found = hashing.finish();
        if found != self.digest {
            let fault = format!("its digest is {found}, {} is expected", self.digest);
            return Err(self.fault(fault));
        }
        Ok(())
    }
}

impl<R: Read> Read for Verified<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        if let Some(error) = &self.fault {
            return Err(io::Error::new(io::ErrorKind::InvalidData, error.clone()));
        }
        let len = self.reader.read(buf)?;
        if len == 0 {
            return self.end().map(|()| 0);
        }
        self.seen = self.seen.saturating_add(len as u64);
        if let Some(size) = self.size.filter(|&size| self.seen > size) {
            return Err(self.fault(format!("it is longer than {size} bytes, which are expected")));
        }
        if let Some(hashing) = &mut self.hashing {
            hashing.update(buf.get(..len).unwrap_or_default());
        }
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], digest: Digest, size: Option<u64>) -> Result<Vec<u8>> {
        let mut found = Vec::new();
        match Verified::new(bytes, digest, size, "blob").read_to_end(&mut found) {
            Ok(_) => Ok(found),
            Err(error) => Err(error.get_ref().unwrap().downcast_ref::<Error>().unwrap().clone()),
        }
    }

    #[test]
    fn digests_are_parsed_strictly() {
        let good = format!("sha256:{}", "0a".repeat(32));
        assert_eq!(good.parse::<Digest>().unwrap().blob_path(), format!("blobs/sha256/{}", "0a".repeat(32)));
        assert!(format!("sha512:{}", "0".repeat(128)).parse::<Digest>().is_ok());
        for wrong in
            ["", "sha256", "sha256:", "sha256:../../etc/passwd", "md5:00", &good[..70], &good.to_uppercase()]
        {
            assert!(wrong.parse::<Digest>().is_err(), "{wrong}");
        }
        assert!(format!("sha512:{}", "0".repeat(64)).parse::<Digest>().is_err());
    }

    #[test]
    fn length_and_digest_are_compared_at_the_end() {
        let digest = Digest::of(b"layer");
        assert_eq!(read(b"layer", digest.clone(), Some(5)).unwrap(), b"layer");
        assert_eq!(read(b"layer", digest.clone(), None).unwrap(), b"layer");
        let fault = |bytes, size| read(bytes, digest.clone(), size).unwrap_err().to_string();
        assert!(fault(b"laye", Some(5)).contains("ends after 4 bytes, 5 are expected"));
        assert!(fault(b"layers", Some(5)).contains("longer than 5"));
        assert!(fault(b"lager", Some(5)).contains(&digest.to_string()));
        let long: Digest = format!("sha512:{}", "0".repeat(128)).parse().unwrap();
        assert!(read(b"layer", long, None).unwrap_err().to_string().contains("sha512:"));
    }
}
