//! Contents of listings, and selection of paths.

use crate::support::*;
use packfs_core::*;
use packfs_format::*;
use packfs_sink::*;

fn image() -> Fake {
    let mut fake = Fake::new();
    let usr = fake.dir(ROOT, b"usr");
    let bin = fake.dir(usr, b"bin");
    fake.text(bin, b"[", "text");
    fake.text(bin, b"sh", "text");
    fake.symlink(bin, b"bash", b"sh");
    fake.text(usr, b"x\xff", "text");
    fake.add(ROOT, b"null", InodeKind::CharDevice(DeviceNumber { major: 1, minor: 3 }));
    fake
}

fn listed(fake: Fake, paths: &[&[u8]], recursive: bool, directory_itself: bool) -> Result<Vec<String>> {
    let paths = paths.iter().map(|text| Pattern::parse(text)).collect::<Result<_>>()?;
    let options = ListOptions { paths, recursive, directory_itself, ..ListOptions::default() };
    let mut rows = Vec::new();
    list(&fake.volume(), &options, &Silent, &mut |row| {
        rows.push(row.path.to_string());
        Ok(())
    })?;
    Ok(rows)
}

#[test]
fn a_directory_lists_what_is_in_it_and_a_file_lists_itself() {
    assert_eq!(listed(image(), &[], false, false).unwrap(), ["null", "usr"]);
    assert_eq!(listed(image(), &[b"usr"], false, false).unwrap(), ["usr/bin", "usr/x\\xff"]);
    assert_eq!(listed(image(), &[b"null"], false, false).unwrap(), ["null"]);
    assert_eq!(listed(image(), &[b"usr/bin/["], false, false).unwrap(), ["usr/bin/["]);
}

#[test]
fn recursion_shows_everything_below_and_the_directory_itself() {
    let below = ["usr/bin", "usr/bin/[", "usr/bin/bash", "usr/bin/sh"];
    assert_eq!(listed(image(), &[b"usr/bin"], true, false).unwrap(), below);
    assert_eq!(listed(image(), &[], true, false).unwrap().len(), 8);
}

#[test]
fn directories_can_be_listed_as_themselves() {
    assert_eq!(listed(image(), &[b"usr"], false, true).unwrap(), ["usr"]);
    assert_eq!(listed(image(), &[], false, true).unwrap(), ["/"]);
}

#[test]
fn globs_choose_what_is_listed() {
    assert_eq!(listed(image(), &[b"usr/bin/*sh"], false, false).unwrap(), ["usr/bin/bash", "usr/bin/sh"]);
    assert_eq!(listed(image(), &[b"**/sh"], false, false).unwrap(), ["usr/bin/sh"]);
    let error = listed(image(), &[b"usr/*.txt"], false, false).unwrap_err();
    assert!(error.to_string().contains("usr/*.txt"), "{error}");
}

#[test]
fn directories_reached_twice_end_the_listing_instead_of_making_it_endless() {
    let mut fake = image();
    let a = fake.dir(ROOT, b"a");
    let b = fake.dir(a, b"b");
    fake.link(b, b"again", a);
    let error = listed(fake, &[], true, false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}

#[test]
fn names_that_cannot_be_are_corruption() {
    let mut fake = image();
    fake.text(ROOT, b"../x", "text");
    assert_eq!(listed(fake, &[], true, false).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn rows_hold_the_attributes_of_the_inode() {
    let mut rows = Vec::new();
    let options = ListOptions { recursive: true, ..ListOptions::default() };
    list(&image().volume(), &options, &Silent, &mut |row| {
        rows.push(row);
        Ok(())
    })
    .unwrap();
    let bash = rows.iter().find(|row| row.path.as_bytes() == b"usr/bin/bash").unwrap();
    assert_eq!((bash.target.as_deref(), bash.len, bash.file_type), (Some(&b"sh"[..]), 2, FileType::Symlink));
    let null = rows.iter().find(|row| row.path.as_bytes() == b"null").unwrap();
    assert_eq!(null.device, Some(DeviceNumber { major: 1, minor: 3 }));
    assert_eq!(null.mode_text(), "crw-r--r--");
}
