//! Images of old formats, made by the tools of their time: each is listed, read, checked, unpacked
//! and mounted, and what comes out is held against its manifest. The images are those in
//! `testdata/legacy`, whatever lies there.

mod flips;
mod journals;
mod manifest;
mod routes;

pub(crate) use manifest::manifests;
use manifest::{Manifest, folder};
use packfs_core::Silent;
use packfs_format::Severity;

/// Images of which `take` picks the names, each with its manifest.
fn each(take: impl Fn(&Manifest) -> bool, work: impl Fn(&Manifest, &std::path::Path)) {
    for manifest in manifests().iter().filter(|it| take(it)) {
        let folder = tempfile::tempdir().unwrap();
        let image = manifest.unpacked_image(folder.path());
        work(manifest, &image);
    }
}

#[test]
fn every_image_has_a_manifest_and_every_manifest_an_image() {
    let manifests = manifests();
    let names: Vec<&str> = manifests.iter().map(|manifest| manifest.file.as_str()).collect();
    assert!(names.len() >= 59, "{names:?}");
    for entry in std::fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_image = !name.ends_with(".json") && !name.starts_with("tree-") && name != "README.md";
        assert!(!is_image || names.contains(&name.as_str()), "{name} has no manifest");
    }
}

#[test]
fn listing_and_contents_equal_the_manifest() {
    each(Manifest::has_entries, |manifest, image| manifest.assert_holds(&routes::loaded(image), "read"));
}

#[test]
fn the_unpacked_tree_equals_the_manifest() {
    each(Manifest::has_entries, |manifest, image| {
        let folder = tempfile::tempdir().unwrap();
        manifest.assert_holds(&routes::unpacked(image, folder.path()), "unpacked");
    });
}

#[test]
fn the_mounted_tree_equals_the_manifest() {
    each(Manifest::has_entries, |manifest, image| {
        let folder = tempfile::tempdir().unwrap();
        manifest.assert_holds(&routes::fuse(image, folder.path()), "mounted");
    });
}

#[test]
fn nothing_is_wrong_with_them() {
    each(
        |manifest| !manifest.is_damaged(),
        |manifest, image| {
            let opened = packfs::open(image).unwrap();
            let mut faults = Vec::new();
            let mut found = |finding: packfs_format::Finding| {
                if finding.severity == Severity::Error {
                    faults.push(finding);
                }
            };
            opened.volume().check(&mut found).unwrap();
            let loaded = opened.load(&Silent).unwrap();
            packfs::check::content(opened.engine(), &loaded, &Silent, &mut found).unwrap();
            assert!(faults.is_empty(), "{}: {faults:?}", manifest.name);
            let owned: u64 = opened.volume().space().unwrap().iter().map(|row| row.len).sum();
            assert_eq!(owned, opened.image().len(), "{}", manifest.name);
        },
    );
}

#[test]
fn disks_in_containers_are_byte_for_byte_what_went_in() {
    each(
        |manifest| manifest.disk.is_some(),
        |manifest, image| {
            let (len, hash) = manifest.disk.clone().unwrap();
            let opened = packfs::OpenOptions::new().outermost().open(image).unwrap();
            let inner = opened.volume().inner_images().unwrap();
            assert_eq!(inner.len(), 1, "{}", manifest.name);
            let loaded = opened.load(&Silent).unwrap();
            let snapshot = packfs_testkit::snapshot_tree(&loaded.tree, &**opened.engine());
            let row = &snapshot.0[inner[0].name.as_bytes()];
            assert_eq!(row.len, len, "{}", manifest.name);
            assert_eq!(row.content, hash, "{}", manifest.name);
        },
    );
}

#[test]
fn the_tree_in_a_nested_image_equals_its_manifest() {
    let all = manifests();
    let named = |name: &str| all.iter().find(|it| it.name == name).unwrap_or_else(|| panic!("no {name}"));
    let folder = tempfile::tempdir().unwrap();
    let image = named("cloop-2.0-iso-b64k").unpacked_image(folder.path());
    named("iso9660-rr-joliet").assert_holds(&routes::loaded(&image), "in a cloop");
}
