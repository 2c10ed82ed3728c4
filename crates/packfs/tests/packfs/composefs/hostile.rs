//! Damaged images and dumps end in errors, never in a panic or a path outside of the store.

use super::{DUMP, image};
use packfs::composefs::{Versions, dump, make_of_dump, objects};
use packfs::{OpenOptions, open_bytes};
use packfs_testkit::Random;

#[test]
fn damaged_images_are_read_or_refused() {
    let good = image(DUMP.as_bytes(), Versions::default());
    let store = tempfile::tempdir().unwrap();
    let path = store.path().join("image");
    let mut random = Random::new(1);
    for _ in 0..600 {
        let mut bytes = good.clone();
        for _ in 0..1 + random.below(4) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = match random.below(3) {
                0 => 0xff,
                1 => bytes[at] ^ 1 << random.below(8),
                _ => random.below(256) as u8,
            };
        }
        if random.below(10) == 0 {
            bytes.truncate(random.below(bytes.len() as u64) as usize);
        }
        let Ok(opened) = open_bytes(bytes) else { continue };
        let _ = dump(&opened, &mut std::io::sink());
        let _ = objects(&opened);
        for walked in opened.walk().flatten() {
            let _ = opened.volume().xattrs(walked.id);
            let _ = opened.open_id(walked.id);
        }
    }
    std::fs::write(&path, good).unwrap();
    assert!(OpenOptions::new().objects(store.path()).open(&path).is_ok());
}

#[test]
fn damaged_dumps_are_read_or_refused() {
    let mut random = Random::new(2);
    for _ in 0..2000 {
        let mut text = DUMP.as_bytes().to_vec();
        for _ in 0..1 + random.below(4) {
            let at = random.below(text.len() as u64) as usize;
            match random.below(3) {
                0 => text[at] = b" /\\=@-0\n"[random.below(8) as usize],
                1 => drop(text.remove(at)),
                _ => text[at] = random.below(256) as u8,
            }
        }
        let _ = make_of_dump(&mut &text[..], Versions::default());
    }
}

#[test]
fn no_path_of_an_object_leads_out_of_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("objects");
    std::fs::create_dir_all(store.join("ab")).unwrap();
    std::fs::write(folder.path().join("secret"), "s".repeat(100)).unwrap();
    for path in ["../secret", "/../secret", "ab/../../secret", "ab/x", "secret"] {
        let text = format!("/ 0 40755 2 0 0 0 0.0 - - -\n/f 100 100644 1 0 0 0 0.0 {path} - -\n");
        let image = folder.path().join("image");
        std::fs::write(&image, super::image(text.as_bytes(), Versions::default())).unwrap();
        let opened = OpenOptions::new().objects(&store).open(&image).unwrap();
        let error = opened.read("f").unwrap_err();
        assert_eq!(error.kind(), packfs::ErrorKind::Unsupported, "{error}");
    }
}

#[test]
fn very_many_files_of_one_object_are_over_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let object = folder.path().join("ab").join("c".repeat(62));
    std::fs::create_dir(object.parent().unwrap()).unwrap();
    // A hole of 1 GiB.
    std::fs::File::create(&object).unwrap().set_len(1 << 30).unwrap();
    let mut text = "/ 0 40755 2 0 0 0 0.0 - - -\n".to_owned();
    for number in 0..41_000 {
        let path = format!("ab/{}", "c".repeat(62));
        text += &format!("/{number} 1073741824 100644 1 0 0 0 0.0 {path} - -\n");
    }
    let image = folder.path().join("image");
    std::fs::write(&image, super::image(text.as_bytes(), Versions::default())).unwrap();
    let opened = OpenOptions::new().objects(folder.path()).open(&image).unwrap();
    let wanted: Vec<_> = opened
        .walk()
        .map(Result::unwrap)
        .filter(|walked| !walked.path.is_root())
        .map(|walked| packfs::read::Wanted { id: walked.id, len: 1 << 30 })
        .collect();
    assert_eq!(opened.engine().check_data(&wanted).unwrap_err().kind(), packfs::ErrorKind::Limit);
    assert!(opened.engine().check_data(&wanted[..10]).is_ok());
}
