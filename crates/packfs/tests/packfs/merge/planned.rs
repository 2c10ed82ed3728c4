//! Shards by plans: a directory is planned, packed shard by shard, and merged.

use super::shards::agrees_with;
use packfs::options::Options;
use packfs::shards::{
    DirStore, ListFormat, Plan, PlanSource, Planning, Recipe, ShardOptions, ShardOutcome, ShardState, Shards,
    Store, pack_shard, plan, shard_images, verify_merged, verify_shard,
};
use packfs::{ErrorKind, PackOptions, Silent};
use packfs_testkit::{is_root, odd_tree, snapshot_dir, write_dir};
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const BLOCK_LEN: u32 = 16 << 10;

/// A directory with everything that a filesystem holds, and folders for plans and stores.
struct Source {
    folder: tempfile::TempDir,
}

impl Source {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (tree, contents) = odd_tree(BLOCK_LEN as usize, is_root());
        std::fs::create_dir(folder.path().join("source")).unwrap();
        write_dir(&tree, &contents, &folder.path().join("source"));
        Source { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    #[track_caller]
    fn plan(&self, name: &str, shards: Shards, recipe: Recipe) -> Plan {
        self.plan_of(name, shards, recipe, PlanSource::Walk, 1 << 20)
    }

    #[track_caller]
    fn plan_of(
        &self,
        name: &str,
        shards: Shards,
        recipe: Recipe,
        input: PlanSource<'_>,
        memory: usize,
    ) -> Plan {
        let (source, output) = (&*self.path("source"), &*self.path(name));
        plan(Planning { source, input, shards, recipe, memory, output }, &Silent)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    fn store(&self, name: &str) -> DirStore {
        DirStore::open(&self.path(name), true).unwrap()
    }
}

fn recipe(format: &str, codec: &str, options: &[(&str, &str)]) -> Recipe {
    let block_len = BLOCK_LEN.to_string();
    let options: Vec<String> = options.iter().map(|(name, value)| format!("{name}={value}")).collect();
    // Formats hold whole seconds, or fewer types of attributes.
    let texts = [("format", format), ("codec", codec), ("block-size", &block_len), ("lossy", "on")];
    let texts = texts.into_iter().chain(options.iter().map(|option| ("option", &**option)));
    packfs::shards::recipe(texts.map(|(name, text)| (name, OsStr::new(text)))).unwrap()
}

#[track_caller]
fn pack_all(plan: &Plan, store: &dyn Store, jobs: usize) {
    for index in 0..plan.shards.len() {
        let packing = PackOptions { jobs, ..PackOptions::default() };
        let options = ShardOptions { packing, ..ShardOptions::default() };
        let outcome =
            pack_shard(plan, index, store, &options, &Silent).unwrap_or_else(|error| panic!("{error}"));
        assert!(matches!(outcome, ShardOutcome::Done(_)), "{outcome:?}");
    }
}

/// Plans, packs, merges, and compares with the image of the whole directory.
#[track_caller]
fn merges(source: &Source, shards: Shards, recipe: Recipe) {
    let what = format!("{shards:?} {recipe:?}");
    let format = recipe.format.clone();
    let name = format!("plan-{}", std::fs::read_dir(source.folder.path()).unwrap().count());
    let plan = source.plan(&name, shards, recipe.clone());
    let store = source.store(&format!("{name}-store"));
    pack_all(&plan, &store, 2);
    let image = source.path(&format!("{name}.img"));
    packfs::merge(shard_images(&plan, &store, &Silent).unwrap(), &image).run().unwrap();
    let whole = source.path(&format!("{name}.whole"));
    let pack = packfs::pack(source.path("source"), &whole).with(|options| {
        recipe.options.iter().for_each(|(name, text)| options.set(name, text).unwrap());
    });
    pack.run().unwrap();
    let (expected, _) = crate::common::read_image(&whole);
    agrees_with(&image, &format, &expected, &what);
    let verified = verify_merged(&plan, &image, 2, &Silent).unwrap();
    assert_eq!((verified.entries, verified.faults), (plan.totals.entries, Vec::<String>::new()), "{what}");
    std::fs::remove_dir_all(source.path(&format!("{name}-store"))).unwrap();
}

#[test]
fn one_to_fifty_planned_shards_are_the_whole_directory() {
    let source = Source::new();
    for count in [1, 7, 50] {
        merges(&source, Shards::Count(count), recipe("squashfs", "zstd:3", &[]));
        merges(&source, Shards::Count(count), recipe("erofs", "lz4hc", &[]));
    }
    merges(&source, Shards::Size(100_000), recipe("squashfs", "gzip:1", &[]));
}

#[test]
fn planned_shards_of_every_codec_are_the_whole_directory() {
    let source = Source::new();
    for codec in ["lzo", "lz4", "xz", "none"] {
        merges(&source, Shards::Count(5), recipe("squashfs", codec, &[("fragments", "always")]));
    }
    for (codec, kernel) in [("lzma", "6.6"), ("deflate", "6.6"), ("zstd:3", "6.12"), ("none", "6.1")] {
        merges(&source, Shards::Count(5), recipe("erofs", codec, &[("kernel", kernel)]));
    }
    for options in
        [&[("index", "full")][..], &[("index", "compact")], &[("fragments", "all")], &[("dedupe", "ranges")]]
    {
        merges(&source, Shards::Count(5), recipe("erofs", "lz4", options));
    }
    merges(&source, Shards::Count(5), recipe("erofs", "lz4", &[("index", "extents"), ("kernel", "6.18")]));
}

#[test]
fn a_shard_has_the_same_bytes_for_any_number_of_threads() {
    let source = Source::new();
    for format in ["squashfs", "erofs"] {
        let plan = source.plan(&format!("{format}-plan"), Shards::Count(3), recipe(format, "lz4", &[]));
        let stores = [1, 2, 16].map(|jobs| {
            let name = format!("{format}-{jobs}");
            pack_all(&plan, &source.store(&name), jobs);
            source.path(&name)
        });
        let names = names(&stores[0]);
        assert_eq!(names.len(), 6);
        for name in names.iter().map(|name| OsStr::from_bytes(name)) {
            let bytes = stores.each_ref().map(|store| std::fs::read(store.join(name)).unwrap());
            assert!(bytes[0] == bytes[1] && bytes[0] == bytes[2], "{format} {name:?}");
        }
    }
}

/// Paths of the source, or records of `find -printf`, in reverse order.
fn listed(source: &Source, find: bool, separator: u8) -> Vec<u8> {
    let printed = if find { "%y %m %U %G %s %T@ %D %i %n %P\\0" } else { "%P\\0" };
    let output = std::process::Command::new("find")
        .arg(source.path("source"))
        .args(["-printf", printed])
        .output()
        .unwrap();
    let mut records: Vec<&[u8]> = output.stdout.split(|&byte| byte == 0).collect();
    records.reverse();
    records.join(&separator)
}

#[test]
fn lists_and_walks_give_the_same_plan_with_any_memory() {
    let source = Source::new();
    let recipe = || recipe("squashfs", "gzip:1", &[]);
    let walked = source.plan("walked", Shards::Count(9), recipe());
    let has_lines = snapshot_dir(&source.path("source")).0.keys().any(|path| path.contains(&b'\n'));
    for (name, find, separator, format) in [
        ("paths", false, 0, ListFormat::Paths),
        ("find", true, 0, ListFormat::Find),
        ("lines", true, b'\n', ListFormat::Find),
    ] {
        if separator == b'\n' && has_lines {
            continue;
        }
        let list = listed(&source, find, separator);
        let input = PlanSource::List { reader: Box::new(&*list), name: name.into(), format };
        let planned = source.plan_of(name, Shards::Count(9), recipe(), input, 1);
        assert_eq!(planned.shards, walked.shards, "{name}");
    }
    // Directories that a list leaves out are added.
    let files: Vec<u8> = listed(&source, true, 0)
        .split(|&byte| byte == 0)
        .filter(|record| !record.starts_with(b"d"))
        .flat_map(|record| [record, b"\0"].concat())
        .collect();
    let input =
        PlanSource::List { reader: Box::new(&*files), name: "files".into(), format: ListFormat::Find };
    let planned = source.plan_of("files", Shards::Count(2), recipe(), input, 1 << 20);
    assert_eq!(planned.totals.files, walked.totals.files);
    assert!(planned.totals.entries > planned.totals.files && planned.totals.entries < walked.totals.entries);
}

#[test]
fn names_of_one_file_stay_in_one_shard() {
    let folder = tempfile::tempdir().unwrap();
    let source = Source { folder };
    let at = |name: &str| source.path("source").join(name);
    for dir in ["a", "m/n", "z"] {
        std::fs::create_dir_all(at(dir)).unwrap();
    }
    for number in 0..9 {
        std::fs::write(at(&format!("m/{number}")), vec![number; 50_000]).unwrap();
    }
    std::fs::write(at("a/first"), vec![7; 100_000]).unwrap();
    std::fs::hard_link(at("a/first"), at("m/n/second")).unwrap();
    std::fs::hard_link(at("a/first"), at("z/third")).unwrap();
    let plan = source.plan("plan", Shards::Count(6), recipe("squashfs", "gzip", &[]));
    let first = std::fs::read(plan.list_path(0)).unwrap();
    for name in ["a/first", "m/n/second", "z/third"] {
        assert!(first.windows(name.len()).any(|part| part == name.as_bytes()), "{name}");
    }
    assert_eq!((plan.totals.files, plan.totals.split_links), (10, 0));
    merges(&source, Shards::Count(6), recipe("erofs", "lz4", &[]));
}

#[test]
fn a_changed_source_is_told_entry_by_entry_and_planned_again_in_part() {
    let source = Source::new();
    let data = source.path("source").join("data");
    std::fs::create_dir(&data).unwrap();
    for name in ["gone", "longer", "newer", "moded", "typed", "same"] {
        std::fs::write(data.join(name), name).unwrap();
    }
    let planned = source.plan("plan", Shards::Count(4), recipe("squashfs", "gzip", &[]));
    let store = source.store("store");
    pack_all(&planned, &store, 1);
    std::fs::remove_file(data.join("gone")).unwrap();
    std::fs::write(data.join("longer"), "longer than before").unwrap();
    let newer = std::fs::File::options().write(true).open(data.join("newer")).unwrap();
    newer.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    std::fs::set_permissions(data.join("moded"), std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .unwrap();
    std::fs::remove_file(data.join("typed")).unwrap();
    std::fs::create_dir(data.join("typed")).unwrap();
    let mut found = Vec::new();
    let empty = source.store("empty");
    for index in 0..4 {
        match pack_shard(&planned, index, &empty, &ShardOptions::default(), &Silent).unwrap() {
            ShardOutcome::Done(_) => {}
            ShardOutcome::Changed(changes) => {
                found.extend(changes.iter().map(|change| format!("{} {}", change.path, change.kind.word())));
            }
        }
        // A shard that is there needs no source.
        let present = pack_shard(&planned, index, &store, &ShardOptions::default(), &Silent).unwrap();
        assert!(matches!(present, ShardOutcome::Done(done) if done.was_present));
    }
    found.sort();
    found.dedup();
    let expected = [
        "data time",
        "data/gone missing",
        "data/longer size",
        "data/moded owner",
        "data/newer time",
        "data/typed type",
    ];
    assert_eq!(found, expected);
    let again = source.plan("again", planned.cuts().unwrap(), planned.recipe.clone());
    let kept = again.shards.iter().filter(|shard| planned.shards.contains(shard)).count();
    assert_eq!(again.shards.len(), 4);
    assert!((1..4).contains(&kept), "{kept}");
}

/// A plan of two shards, both packed.
fn two_shards() -> (Source, Plan, DirStore) {
    let source = Source::new();
    let plan = source.plan("plan", Shards::Count(2), recipe("squashfs", "gzip", &[]));
    let store = source.store("store");
    pack_all(&plan, &store, 2);
    (source, plan, store)
}

#[test]
fn shards_that_are_missing_swapped_or_damaged_are_refused_and_packed_again() {
    let (source, plan, store) = two_shards();
    let name = |index: usize| format!("{}.shard", plan.name_of(&plan.shards[index]));
    let (first, second) = (source.path("store").join(name(0)), source.path("store").join(name(1)));
    let (bytes, other) = (std::fs::read(&first).unwrap(), std::fs::read(&second).unwrap());
    let mut middle = bytes.clone();
    let at = bytes.len() / 2;
    middle[at] ^= 1;
    let truncated = bytes[..bytes.len() - 1].to_vec();
    for (damaged, by_ends) in [(other, true), (truncated, true), (middle, bytes.len() < 128 << 10)] {
        std::fs::write(&first, &damaged).unwrap();
        let state = verify_shard(&plan, 0, &store, 2, &Silent).unwrap();
        assert_eq!(state.state, ShardState::Damaged);
        assert_eq!(verify_shard(&plan, 1, &store, 2, &Silent).unwrap().state, ShardState::Sound);
        if by_ends {
            let error = shard_images(&plan, &store, &Silent).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            assert!(error.hints()[0].contains("packfs pack-shard"), "{error:?}");
        }
        let options = ShardOptions { reverify: true, ..ShardOptions::default() };
        let outcome = pack_shard(&plan, 0, &store, &options, &packfs::WithoutWarnings(&Silent)).unwrap();
        assert!(matches!(outcome, ShardOutcome::Done(done) if !done.was_present));
        assert_eq!(std::fs::read(&first).unwrap(), bytes);
    }
    std::fs::remove_file(source.path("store").join(format!("{}.json", plan.name_of(&plan.shards[1]))))
        .unwrap();
    let error = shard_images(&plan, &store, &Silent).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed);
    assert!(error.hints()[0].ends_with(&format!("1 --to {}", store.name())), "{error:?}");
    assert_eq!(verify_shard(&plan, 1, &store, 2, &Silent).unwrap().state, ShardState::Missing);
    // The shard is there: it gets a sidecar only.
    pack_all(&plan, &store, 2);
    assert_eq!(shard_images(&plan, &store, &Silent).unwrap(), [first, second]);
}

#[test]
fn hostile_plans_lists_and_sidecars_are_refused() {
    let (source, plan, store) = two_shards();
    let path = source.path("plan").join("plan.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let (version, recipe_sha256) = (packfs::shards::TOOL_VERSION, &*plan.recipe_sha256);
    for (from, to, kind) in [
        ("\"packfs_plan\": 1", "\"packfs_plan\": 2", ErrorKind::Unsupported),
        (&*format!("\"tool_version\": \"{version}\""), "\"tool_version\": \"9\"", ErrorKind::Usage),
        ("\"gzip\"", "\"zstd\"", ErrorKind::Corrupt),
        (recipe_sha256, "../../x", ErrorKind::Corrupt),
        ("\"shards\": [", "\"shards\": 7, \"more\": [", ErrorKind::Corrupt),
        ("{", "[[[[", ErrorKind::Corrupt),
    ] {
        assert!(text.contains(from), "{from}");
        std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
        let error = Plan::read(&source.path("plan")).unwrap_err();
        assert_eq!(error.kind(), kind, "{from}: {error}");
    }
    std::fs::write(&path, &text).unwrap();
    assert_eq!(Plan::read(&source.path("plan")).unwrap().shards, plan.shards);
    let sidecar = source.path("store").join(format!("{}.json", plan.name_of(&plan.shards[0])));
    for damage in ["", "{}", &"[".repeat(100_000), &plan.shards[1].list_sha256] {
        let was = std::fs::read_to_string(&sidecar).unwrap();
        let swapped = was.replace(&plan.shards[0].list_sha256, damage);
        std::fs::write(&sidecar, if damage.len() == 64 { &swapped } else { damage }).unwrap();
        let error = shard_images(&plan, &store, &Silent).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        std::fs::write(&sidecar, was).unwrap();
    }
    let list = plan.list_path(1);
    std::fs::File::options()
        .append(true)
        .open(&list)
        .unwrap()
        .write_all(b"f 644 0 0 0 0.000000000 ../x\0")
        .unwrap();
    let error = pack_shard(&plan, 1, &source.store("other"), &ShardOptions::default(), &Silent).unwrap_err();
    assert!(error.kind() == ErrorKind::Corrupt && error.to_string().contains("SHA-256"), "{error}");
}

#[test]
fn workers_that_pack_one_shard_at_once_all_succeed() {
    let source = Source::new();
    let plan = source.plan("plan", Shards::Count(1), recipe("squashfs", "gzip", &[]));
    let store = source.store("store");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| pack_all(&plan, &store, 1));
        }
    });
    assert_eq!(verify_shard(&plan, 0, &store, 1, &Silent).unwrap().state, ShardState::Sound);
    assert_eq!(names(&source.path("store")).len(), 2);
}

fn names(folder: &Path) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().as_bytes().to_vec()).collect()
}

#[test]
fn a_plan_is_made_once() {
    let source = Source::new();
    let plan = source.plan("plan", Shards::Count(2), recipe("squashfs", "gzip", &[]));
    assert_eq!(source.plan("plan", Shards::Count(2), recipe("squashfs", "gzip", &[])), plan);
    let (path, output) = (source.path("source"), source.path("plan"));
    let make = |recipe: Recipe| {
        let input = PlanSource::Walk;
        let shards = Shards::Count(3);
        packfs::shards::plan(
            Planning { source: &path, input, shards, recipe, memory: 1 << 20, output: &output },
            &Silent,
        )
    };
    assert_eq!(make(recipe("squashfs", "gzip", &[])).unwrap_err().kind(), ErrorKind::Failed);
    assert_eq!(make(recipe("squashfs", "none:7", &[])).unwrap_err().kind(), ErrorKind::Usage);
    assert_eq!(make(recipe("iso9660", "none", &[])).unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(names(source.folder.path()).len(), 2);
}
