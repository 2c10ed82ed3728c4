//! Nothing outside the target changes, whatever the image contains and whatever is planted in the
//! target.

use crate::support::Place;
use crate::support::*;
use packfs_core::*;
use packfs_sink::*;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// Returns an image with `d/f` (several pieces), `d/sentinel`, `d/empty/x`, `f` and links to one of
/// them.
fn image() -> Fake {
    let mut fake = Fake::new();
    let dir = fake.dir(ROOT, b"d");
    let data = vec![7; 3 * EXTENT_LEN];
    let file = fake.file(dir, b"f", &[Part::Data(&data)]);
    fake.text(dir, b"sentinel", "overwritten");
    fake.symlink(dir, b"link", b"../../outside/sentinel");
    let empty = fake.dir(dir, b"empty");
    fake.text(empty, b"x", "text");
    fake.text(ROOT, b"f", "text");
    fake.link(ROOT, b"hard link", file);
    fake.link(empty, b"hard link", file);
    for id in [dir, empty, file] {
        fake.meta(id).mode = 0o777;
        fake.xattr(id, b"user.planted", b"x");
    }
    fake
}

fn try_unpack(place: &Place, existing: Existing, progress: &dyn Progress) -> Result<UnpackReport> {
    let opened = image().open();
    let options = UnpackOptions { existing, ..UnpackOptions::default() };
    let outcome = unpack(&opened.engine, &opened.loaded, &place.target(), &options, progress);
    place.assert_outside_untouched();
    outcome
}

const POLICIES: [Existing; 5] =
    [Existing::Refuse, Existing::Merge, Existing::Replace, Existing::Skip, Existing::KeepNewer];

/// Plants a link at `at` in the target, unpacks under every policy, and returns the policies that
/// succeeded.
fn with_planted_link(at: &str, to: impl Fn(&Place) -> PathBuf) -> Vec<Existing> {
    let mut succeeded = Vec::new();
    for existing in POLICIES {
        let place = Place::new();
        let link = place.target().join(at);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(to(&place), &link).unwrap();
        if try_unpack(&place, existing, &Silent).is_ok() {
            succeeded.push(existing);
        }
    }
    succeeded
}

#[test]
fn a_link_in_place_of_a_directory_is_replaced_or_refused_but_never_followed() {
    let succeeded = with_planted_link("d", Place::outside);
    assert_eq!(succeeded, [Existing::Replace, Existing::KeepNewer]);
    with_planted_link("d", |_| "../outside".into());
    with_planted_link("d/empty", |place| place.outside().join("empty"));
}

#[test]
fn a_link_in_place_of_a_file_is_replaced_or_refused_but_never_followed() {
    for name in ["f", "d/f", "d/sentinel", "d/link", "hard link"] {
        let succeeded = with_planted_link(name, |place| place.outside().join("sentinel"));
        assert!(succeeded.contains(&Existing::Replace) && !succeeded.contains(&Existing::Merge), "{name}");
        with_planted_link(name, |place| place.outside().join("not there"));
        with_planted_link(name, Place::outside);
    }
}

#[test]
fn a_hard_link_in_place_of_a_file_is_not_written_through() {
    for name in ["f", "d/f", "d/sentinel", "hard link"] {
        for existing in POLICIES {
            let mut place = Place::new();
            let at = place.target().join(name);
            std::fs::create_dir_all(at.parent().unwrap()).unwrap();
            std::fs::hard_link(place.outside().join("sentinel"), &at).unwrap();
            place.look_again();
            let opened = image().open();
            let options = UnpackOptions { existing, ..UnpackOptions::default() };
            let _ = unpack(&opened.engine, &opened.loaded, &place.target(), &options, &Silent);
            assert_eq!(
                std::fs::read(place.outside().join("sentinel")).unwrap(),
                b"untouched",
                "{name} {existing:?}"
            );
        }
    }
}

#[test]
fn a_target_that_is_a_link_itself_is_refused() {
    for existing in POLICIES {
        let place = Place::new();
        symlink(place.outside().join("empty"), place.target()).unwrap();
        let error = try_unpack(&place, existing, &Silent).unwrap_err();
        assert!(error.hints().iter().any(|hint| hint.contains("link")), "{error}");
    }
}

/// Replaces something in the target by a link while it is being unpacked.
struct PlantLater {
    countdown: AtomicI64,
    at: PathBuf,
    aside: PathBuf,
    to: PathBuf,
}

impl PlantLater {
    fn tick(&self) {
        if self.countdown.fetch_sub(1, Ordering::Relaxed) == 0 {
            let _ = std::fs::rename(&self.at, &self.aside);
            let _ = symlink(&self.to, &self.at);
        }
    }
}

impl Progress for PlantLater {
    fn advance(&self, _files: u64, _bytes_in: u64, _bytes_out: u64) {
        self.tick();
    }

    fn cancelled(&self) -> bool {
        self.tick();
        false
    }
}

#[test]
fn links_planted_while_unpacking_are_never_followed() {
    for (at, to) in [
        ("d", "outside"),
        ("d/empty", "outside/empty"),
        ("d/f", "outside/sentinel"),
        ("f", "outside/sentinel"),
        ("d/link", "outside"),
    ] {
        for moment in 0..40 {
            let place = Place::new();
            let progress = PlantLater {
                countdown: moment.into(),
                at: place.target().join(at),
                aside: place.target().join("aside"),
                to: place.target().parent().unwrap().join(to),
            };
            let _ = try_unpack(&place, Existing::Refuse, &progress);
        }
    }
}

/// Replaces a file that is being filled by a hard link to one outside.
struct PlantHardLink {
    countdown: AtomicI64,
    at: PathBuf,
    to: PathBuf,
}

impl Progress for PlantHardLink {
    fn advance(&self, _files: u64, bytes_in: u64, _bytes_out: u64) {
        if bytes_in > 0 && self.countdown.fetch_sub(1, Ordering::Relaxed) == 0 {
            let _ = std::fs::remove_file(&self.at);
            let _ = std::fs::hard_link(&self.to, &self.at);
        }
    }
}

#[test]
fn files_swapped_while_they_are_closed_for_a_while_are_not_written_to() {
    let mut noticed = 0;
    for moment in 0..8 {
        let place = Place::new();
        let mut fake = Fake::new();
        fake.interleaved_files(ROOT, 600, 4);
        let opened = fake.open();
        let sentinel = place.outside().join("sentinel");
        let progress =
            PlantHardLink { countdown: moment.into(), at: place.target().join("f0"), to: sentinel.clone() };
        let options = UnpackOptions::default();
        let outcome = unpack(&opened.engine, &opened.loaded, &place.target(), &options, &progress);
        noticed += i32::from(outcome.is_err());
        assert_eq!(std::fs::read(sentinel).unwrap(), b"untouched");
    }
    assert!(noticed > 0, "at some moments the file was closed");
}

/// Exchanges a directory of the target and a link to the outside repeatedly while it is unpacked.
fn race(place: &Place, existing: Existing, swapped: &str) {
    let (at, decoy) = (place.target().join(swapped), place.target().join("decoy"));
    std::fs::create_dir_all(&at).unwrap();
    symlink(place.outside(), &decoy).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                // Fails if unpacking has replaced one of the two.
                let _ = rustix::fs::renameat_with(rustix::fs::CWD, &at, rustix::fs::CWD, &decoy, flags);
            }
        });
        for _ in 0..4 {
            let opened = image().open();
            let options = UnpackOptions { existing, ..UnpackOptions::default() };
            let _ = unpack(&opened.engine, &opened.loaded, &place.target(), &options, &Silent);
        }
        done.store(true, Ordering::Relaxed);
    });
    place.assert_outside_untouched();
}

#[test]
fn directories_repeatedly_exchanged_for_links_do_not_escape() {
    for existing in [Existing::Merge, Existing::Replace, Existing::Skip, Existing::KeepNewer] {
        for swapped in ["d", "d/empty"] {
            race(&Place::new(), existing, swapped);
        }
    }
}

#[test]
fn exchanged_directories_do_not_escape_without_privileges() {
    as_nobody(|| {
        for swapped in ["d", "d/empty"] {
            race(&Place::new(), Existing::Replace, swapped);
        }
    });
}

#[test]
fn links_of_the_image_are_made_as_they_are() {
    let place = Place::new();
    let mut fake = Fake::new();
    let targets: [&[u8]; 5] = [b"/etc/passwd", b"../../outside", b"..", b"a\xff\x1b", &[b'x'; 4000]];
    for (index, target) in targets.iter().enumerate() {
        fake.symlink(ROOT, index.to_string().as_bytes(), target);
    }
    let opened = fake.open();
    unpack(&opened.engine, &opened.loaded, &place.target(), &UnpackOptions::default(), &Silent).unwrap();
    place.assert_outside_untouched();
    for (index, target) in targets.iter().enumerate() {
        let found = std::fs::read_link(place.target().join(index.to_string())).unwrap();
        assert_eq!(std::os::unix::ffi::OsStrExt::as_bytes(found.as_os_str()), *target);
    }
}

#[test]
fn two_entries_of_one_name_are_refused_before_anything_is_made() {
    let mut fake = Fake::new();
    fake.symlink(ROOT, b"a", b"../outside");
    let dir = fake.dir(ROOT, b"a");
    fake.text(dir, b"f", "text");
    let error = fake.engine().load_tree(&Silent).expect_err("one name must not name two things");
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}

#[test]
fn directories_that_hold_themselves_are_refused() {
    let mut fake = Fake::new();
    let a = fake.dir(ROOT, b"a");
    let b = fake.dir(a, b"b");
    fake.link(b, b"a again", a);
    let error = fake.engine().load_tree(&Silent).expect_err("a directory has one parent");
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    for name in [&b".."[..], b".", b"", b"a/b", b"../outside/x", b"a\0b", &[b'x'; 256]] {
        let mut fake = Fake::new();
        fake.text(ROOT, name, "text");
        assert!(fake.engine().load_tree(&Silent).is_err(), "{name:?}");
    }
}
