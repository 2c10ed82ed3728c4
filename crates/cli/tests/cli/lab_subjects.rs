//! packfs as the lab measures it: its own program, beside those of others.

use crate::fixture::Fixture;
use packfs_lab::process::{Confinement, Output, run};
use packfs_lab::results::Recipe;
use packfs_lab::subject::{Input, Subjects, Unpack};
use packfs_testkit::{Compare, is_root, snapshot_dir};

/// Formats that the kernel and FUSE show alike, with something that only the program's own spelling
/// has.
const RECIPES: [(&str, &str, Option<u32>, [&str; 2]); 3] = [
    ("squashfs", "zstd", Some(131_072), ["-O", "fragments=always"]),
    ("erofs", "lz4hc", Some(16384), ["-O", "fragments=off"]),
    ("erofs", "none", None, ["-O", "dedupe=files"]),
];

#[test]
fn packfs_packs_mounts_and_unpacks_for_the_lab() {
    let fixture = Fixture::with_tree();
    let subjects = Subjects::find(env!("CARGO_BIN_EXE_packfs").as_ref());
    let maker = subjects.maker("packfs").unwrap();
    assert_eq!(maker.program().version, env!("CARGO_PKG_VERSION"));
    let source = fixture.path("rootfs");
    // Others' times and links are compared where others are.
    let compare = Compare { symlink_times: false, dir_links: false, root: false, ..Compare::default() };
    for (number, (format, codec, block_len, options)) in RECIPES.into_iter().enumerate() {
        let recipe = Recipe {
            maker: "packfs".into(),
            format: format.into(),
            codec: codec.into(),
            block_len,
            options: options.map(String::from).to_vec(),
            ..Recipe::default()
        };
        let image = fixture.path(&format!("image.{number}"));
        let command = maker.command(&recipe, &Input::Dir(source.clone()), &image, 2).unwrap();
        let taken = run(&command, &Output::Null, &[]).unwrap();
        assert!(taken.memory_peak.is_none_or(|peak| peak > 1 << 20), "{taken:?}");

        for name in ["packfs-fuse", "kernel"] {
            let at = fixture.path(&format!("{name}.{number}"));
            std::fs::create_dir(&at).unwrap();
            let Ok(reader) = subjects.reader(name) else {
                packfs_testkit::skip(&format!("{name}: {:?}", subjects.missing));
                continue;
            };
            assert!(reader.reads(format));
            let mounted = reader.mount(format, &image, &at, &Confinement::default()).unwrap();
            snapshot_dir(&source).assert_same(&snapshot_dir(&at), compare, name);
            mounted.unmount().unwrap();
            assert_eq!(std::fs::read_dir(&at).unwrap().count(), 0);
        }
        let unpacker = subjects.unpacker("packfs").unwrap();
        let dir = fixture.path(&format!("unpacked.{number}"));
        let command = unpacker.command(&Unpack::Dir(dir.clone()), &image, 2).unwrap();
        run(&command, &Output::Null, &[]).unwrap();
        snapshot_dir(&source).assert_same(&snapshot_dir(&dir), compare, "packfs unpack");
        let tar = fixture.path(&format!("{number}.tar"));
        let command = unpacker.command(&Unpack::Tar, &image, 2).unwrap();
        run(&command, &Output::File(tar.clone()), &[]).unwrap();

        // The tar is what the next image is made of.
        let again = fixture.path(&format!("again.{number}"));
        let command = maker.command(&recipe, &Input::Tar(tar), &again, 1).unwrap();
        run(&command, &Output::Null, &[]).unwrap();
        fixture.run(["diff", &format!("image.{number}"), &format!("again.{number}")]).done();
    }
    assert!(is_root() || subjects.reader("kernel").is_err());
}
