//! Integrity files: recovery data, hash trees, signatures.

use super::Base;
use packfs::MemoryImage;
use packfs::integrity::{self, HashAlgorithm, RecoveryParams, VerityOptions};
use packfs::{Error, Image, Result, ResultExt, Silent};
use packfs_testkit::Random;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::LazyLock;

/// Images that recovery data are of: within a block, of some blocks, of more than one page of an
/// index names.
static PROTECTED: LazyLock<[Vec<u8>; 3]> =
    LazyLock::new(|| [5000, 40_000, 1_020_000].map(|len| Random::new(len as u64).noise(len)));

/// Repairable percentage of each image.
const PERCENT: [u32; 3] = [100, 30, 1];

/// The image of this number, modulo their count.
pub(crate) fn protected(number: u8) -> &'static [u8] {
    &PROTECTED[usize::from(number) % PROTECTED.len()]
}

fn temporary() -> Result<File> {
    tempfile::tempfile().or_io(|| "no temporary file")
}

fn all_of(mut file: File) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0)).or_io(|| "cannot read a temporary file")?;
    file.read_to_end(&mut bytes).or_io(|| "cannot read a temporary file")?;
    Ok(bytes)
}

/// Recovery files; the last two bytes say of which image, and how that is damaged (0: not at all).
/// They stand at the end so that pages keep their places.
pub(super) fn recovery() -> Result<Vec<Base>> {
    let mut all = Vec::new();
    for (number, percent) in (0..).zip(PERCENT) {
        let image = MemoryImage::new("protected", protected(number).to_vec());
        let params = RecoveryParams::new(image.len(), percent)?;
        let file = temporary()?;
        integrity::protect(&image, params, &file, 1, &Silent)?;
        let bytes = all_of(file)?;
        for damage in [0, 1, 0x41] {
            let name = format!("{percent} % of {} bytes, damage {damage:#x}", image.len());
            all.push(Base { name, bytes: [&bytes[..], &[number, damage]].concat() });
        }
    }
    Ok(all)
}

/// Data with a hash tree after it, or of one block, which needs none.
pub(super) fn verity() -> Result<Vec<Base>> {
    let mut all = Vec::new();
    for (blocks, data_block_len, hash_block_len, algorithm, salt) in [
        (1, 512, 512, HashAlgorithm::Sha256, Some(vec![])),
        (40, 512, 512, HashAlgorithm::Sha256, None),
        (80, 512, 512, HashAlgorithm::Sha512, Some(vec![7; 256])),
        (24, 1024, 4096, HashAlgorithm::Sha256, Some(vec![1, 2, 3])),
        (140, 512, 1024, HashAlgorithm::Sha256, None),
        (9, 4096, 1024, HashAlgorithm::Sha512, None),
    ] {
        let mut data = Random::new(blocks).noise((blocks * u64::from(data_block_len)) as usize);
        let image = MemoryImage::new("covered", data.clone());
        let options = VerityOptions { algorithm, data_block_len, hash_block_len, salt, uuid: None };
        let params = options.params(&image, image.len())?;
        let file = temporary()?;
        integrity::write_verity(&image, &params, &file, 0, 1, &Silent)?;
        data.extend(all_of(file)?);
        let name = format!("{blocks} of {data_block_len}, hashes {hash_block_len}, {}", algorithm.name());
        all.push(Base { name, bytes: data });
    }
    if all.iter().any(|base| base.bytes.is_empty()) {
        return Err(Error::failed("a hash tree without bytes"));
    }
    Ok(all)
}

/// The signed bytes.
pub(crate) const SIGNED: &[u8] = b"what is signed, in the corpus of the tests\n";
/// The line of the key that signed it, whose secret half was not kept.
pub(crate) const SIGNERS_KEY: &str = "RWSplCJ6/hlcncqf++0KtXDjY739SV8tQfm1SumhWt0hztnuOmvT7gXq";
/// The signed comment.
pub(crate) const SIGNED_COMMENT: &str = "for the corpus";
const KEY: &str = "untrusted comment: minisign public key: 9D5C19FE7A2294A9\n";
const SIGNATURE: &str = "untrusted comment: signature by packfs
RUSplCJ6/hlcnRxzCt9tfrVRYCkjJwaD3Uj6/8uZwpwT6YBYhX6GPIzeTh4iKJnqGuW9hFScUa2fEIHte63pKfzkxdSkuiux/gw=
trusted comment: for the corpus
Q62jJSzpi5zEosUwwEKjRxe/yX0LLSb8cvYqX38JXujDppPkY2p93UI/aeVH58COa76EFGsCJn/zv7f6qspcBQ==
";

/// A key, a zero byte, a signature.
pub(super) fn signatures() -> Vec<Base> {
    let of = |name: &str, key: &str, signature: &str| Base {
        name: name.into(),
        bytes: [key.as_bytes(), &[0], signature.as_bytes()].concat(),
    };
    // The old kind, over the whole file, has another letter here.
    let old = SIGNATURE.replace("RUSpl", "RWSpl");
    vec![
        of("key as a file", &format!("{KEY}{SIGNERS_KEY}\n"), SIGNATURE),
        of("key as a line", SIGNERS_KEY, SIGNATURE),
        of("line ends of two characters", SIGNERS_KEY, &SIGNATURE.replace('\n', "\r\n")),
        of("the old kind", SIGNERS_KEY, &old),
    ]
}

/// Block length, function, length of the salt, the salt, and what is measured.
pub(super) fn measured() -> Vec<Base> {
    let mut random = Random::new(6);
    let mut all = Vec::new();
    for (shift, function, salt_len, len) in [
        (10, 0, 0, 0),
        (10, 0, 0, 1),
        (10, 1, 32, 1024),
        (12, 0, 5, 40_000),
        (11, 1, 1, 70_000),
        (16, 0, 0, 70_000),
    ] {
        let salt = random.noise(salt_len);
        let bytes = [&[shift, function, salt_len as u8], &salt[..], &random.noise(len)].concat();
        all.push(Base { name: format!("{len} bytes in blocks of 1 << {shift}"), bytes });
    }
    all
}
