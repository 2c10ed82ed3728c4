//! Images of each release: their bytes change only with a line of the changelog, and later versions
//! read them.
//!
//! `testdata/releases/VERSION/images.txt` has a row for each image, from which it is packed again;
//! small images are kept beside it. `PACKFS_WRITE_DOCUMENTS=1 cargo test -p packfs releases::`
//! writes the folder of the version in Cargo.toml, from the rows of the newest one.

mod rows;
mod rule;
mod sources;

use packfs::check::Findings;
use packfs::integrity::{DigestFacts, digest_tree};
use packfs::{Silent, to_hex};
use rows::{Row, VERSION, folder, kept, parsed, text, versions};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

/// Returns SHA-256 of an image, and of the tree in it by the rules of docs/formats/digest.md. All
/// of it is checked.
fn digests(image: &[u8], name: &str) -> (String, String) {
    let opened = packfs::open_bytes(image).unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut findings = Findings::default();
    opened.check(true, &Silent, &mut findings).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert!(findings.is_sound(), "{name}: {:?}", findings.findings);
    let loaded = opened.load(&Silent).unwrap_or_else(|e| panic!("{name}: {e}"));
    let digests = digest_tree(&loaded.tree, &**opened.engine(), DigestFacts::default(), 0, &Silent).unwrap();
    let tree = digests.root().to_string();
    (to_hex(&Sha256::digest(image)), tree.rsplit(':').next().unwrap().to_owned())
}

fn read_rows(version: &str) -> Vec<Row> {
    parsed(&fs::read_to_string(folder(version).join("images.txt")).unwrap())
}

fn kept_image(version: &str, row: &Row) -> Option<Vec<u8>> {
    let stored = fs::read(folder(version).join(format!("{}.zst", row.name))).ok()?;
    Some(zstd::decode_all(&*stored).unwrap())
}

/// Packs the image of each row anew, and keeps the small ones if `keeps`.
fn packed(rows: &[Row], keeps: Option<&Path>) -> Vec<Row> {
    let scratch = tempfile::tempdir().unwrap();
    let sources = sources::Sources::new(scratch.path());
    let mut found = rows.to_vec();
    for row in &mut found {
        let image = sources.packed(row);
        (row.image, row.tree_read) = digests(&image, &row.name);
        if let Some(folder) = keeps.filter(|_| kept(row))
            && kept_image(VERSION, row).as_ref() != Some(&image)
        {
            fs::write(folder.join(format!("{}.zst", row.name)), zstd::encode_all(&*image, 19).unwrap())
                .unwrap();
        }
    }
    found
}

/// Packs all images, writes them if that is requested, and judges them. Once for all tests.
static VERDICT: LazyLock<Result<(), String>> = LazyLock::new(|| {
    let versions = versions();
    let newest = versions.last().expect("testdata/releases has a folder for each release");
    let log = rule::Changelog::read();
    let is_writing = std::env::var_os("PACKFS_WRITE_DOCUMENTS").is_some() && !log.has_released(VERSION);
    let here = folder(VERSION);
    if is_writing {
        fs::create_dir_all(&here).unwrap();
    }
    let found = packed(&read_rows(newest), is_writing.then_some(&*here));
    if is_writing {
        fs::write(here.join("images.txt"), text(&found)).unwrap();
    }
    let recorded = if here.is_dir() { read_rows(VERSION) } else { Vec::new() };
    let before = versions.iter().rfind(|version| *version != VERSION);
    let before = before.map(|version| (version.clone(), read_rows(version)));
    rule::judge(&found, &recorded, before.as_ref(), &log)
});

#[test]
fn bytes_change_only_with_a_line_of_the_changelog() {
    if let Err(fault) = &*VERDICT {
        panic!("{fault}");
    }
}

#[test]
fn images_of_every_release_are_read() {
    // The images of this version may be written first.
    LazyLock::force(&VERDICT);
    for version in versions() {
        let rows = read_rows(&version);
        let mut names: BTreeSet<String> = rows.iter().filter(|row| kept(row)).map(Row::file).collect();
        for row in rows.iter().filter(|row| kept(row)) {
            let name = format!("{} of {version}", row.name);
            let image = kept_image(&version, row).unwrap_or_else(|| panic!("{name} is missing"));
            assert_eq!(digests(&image, &name), (row.image.clone(), row.tree_read.clone()), "{name}");
        }
        names.insert("images.txt".into());
        let files = fs::read_dir(folder(&version)).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(files.map(|name| name.into_string().unwrap()).collect::<BTreeSet<_>>(), names);
    }
    let log = rule::Changelog::read();
    let missing: Vec<&str> = log.released().filter(|version| !folder(version).is_dir()).collect();
    assert_eq!(missing, [""; 0], "releases without a folder in testdata/releases");
}

#[test]
fn every_format_and_codec_that_packs_has_rows() {
    let rows = read_rows(versions().last().unwrap());
    assert!(rows.len() >= 30, "{}", rows.len());
    let of = |name: &str, value: &str| {
        let is_it = move |row: &&Row| row.options.iter().any(|(own, text)| own == name && text == value);
        rows.iter().filter(is_it).collect::<Vec<_>>()
    };
    let can_pack = |format: &&&dyn packfs::Format| format.packer(&packfs::PackSettings::default()).is_ok();
    let formats = packfs::formats::all().iter().filter(can_pack).map(|format| format.name());
    for format in formats.chain(["composefs"]) {
        assert!(of("format", format).iter().any(|row| kept(row)), "no small image of {format}");
    }
    for codec in packfs::codec::CODECS {
        assert!(!of("codec", codec.name).is_empty(), "no image with codec {}", codec.name);
    }
}
