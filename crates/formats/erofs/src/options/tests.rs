use super::*;
use packfs_core::Goal;

fn options(block_len: Option<u32>, codec: &str, set: &[(&str, &str)]) -> Result<Options> {
    Options::new(&packfs_testkit::settings(Some(codec), block_len, set))
}

fn refused(block_len: Option<u32>, codec: &str, set: &[(&str, &str)]) -> String {
    let error = options(block_len, codec, set).unwrap_err();
    assert_eq!(error.kind(), packfs_core::ErrorKind::Usage);
    format!("{error}; {}", error.hints().join("; "))
}

#[test]
fn the_default_is_for_linux_6_1_and_shares_tails() {
    let defaults = Options::new(&PackSettings::default()).unwrap();
    assert_eq!(defaults.kernel, (6, 1));
    assert_eq!(defaults.fragments, Fragments::Tails);
    assert_eq!(defaults.storage.codecs().unwrap().1, 64 << 10);
    assert_eq!((defaults.block_len, defaults.wide), (4096, false));
}

#[test]
fn a_codec_brings_its_kernel_unless_one_is_named() {
    assert_eq!(options(None, "zstd:3", &[]).unwrap().kernel, (6, 12));
    assert_eq!(options(None, "deflate:3", &[]).unwrap().kernel, (6, 6));
    let text = refused(None, "zstd:3", &[("kernel", "6.6")]);
    assert!(text.contains("zstd needs Linux 6.10") && text.contains("kernel=6.12"), "{text}");
}

#[test]
fn old_kernels_get_one_block_a_cluster_and_no_fragments() {
    for kernel in ["5.4", "5.10"] {
        let old = options(None, "lz4", &[("kernel", kernel)]).unwrap();
        assert_eq!(old.storage.codecs().unwrap().1, 4096);
        assert_eq!((old.fragments, old.inline_clusters, old.holes), (Fragments::Off, false, false));
        let text = refused(Some(8192), "lz4", &[("kernel", kernel)]);
        assert!(text.contains("5.13") && text.contains("kernel=5.15"), "{text}");
    }
    assert!(options(Some(1 << 20), "lz4", &[("kernel", "5.15")]).is_ok());
}

#[test]
fn refuses_options_that_the_kernel_lacks_by_name() {
    for (kernel, name, value) in [
        ("6.1", "index", "extents"),
        ("6.1", "block", "1024"),
        ("6.6", "block", "1024"),
        ("6.12", "48bit", "on"),
        ("6.12", "metabox", "16K"),
        ("5.15", "fragments", "all"),
        ("5.15", "inline-tails", "on"),
        ("5.10", "chunks", "1M"),
        ("6.1", "prefixes", "auto"),
    ] {
        let text = refused(None, "lz4", &[("kernel", kernel), (name, value)]);
        assert!(text.contains("newer") && text.contains("kernel="), "{name}={value}: {text}");
    }
}

#[test]
fn clusters_are_multiples_of_the_block_up_to_1m() {
    for bad in [0, 2048, 5000, 2 << 20] {
        let text = refused(Some(bad), "lz4", &[]);
        assert!(text.contains("multiple of the block of 4K from 4K to 1M"), "{text}");
    }
    assert!(options(Some(12 << 10), "lz4", &[]).is_ok());
}

#[test]
fn clusters_of_1m_in_blocks_of_512_need_extents_as_an_index_cannot_count_them() {
    let text = refused(Some(1 << 20), "lz4", &[("block", "512")]);
    assert!(text.contains("index=extents"), "{text}");
    assert!(options(Some((1 << 20) - 512), "lz4", &[("block", "512")]).is_ok());
    assert!(options(Some(1 << 20), "lz4", &[("block", "512"), ("index", "extents")]).is_ok());
}

#[test]
fn lists_the_values_of_an_option() {
    for (name, value) in
        [("fragments", "maybe"), ("label", "more than fifteen bytes"), ("uuid", "x"), ("align", "0")]
    {
        let text = refused(None, "lz4", &[(name, value)]);
        assert!(text.contains("is allowed"), "{text}");
    }
    assert!(refused(None, "lz4", &[("fragment", "on")]).contains("it has kernel"));
    assert!(refused(None, "xz", &[]).contains("codec"));
}

#[test]
fn codecs_one_refuses_a_second_codec() {
    let rule = ("rule", "*.bin=lzma");
    assert!(options(None, "lz4", &[rule]).is_ok());
    let text = refused(None, "lz4", &[rule, ("codecs", "one")]);
    assert!(text.contains("lz4, lzma"), "{text}");
    assert!(options(None, "lz4", &[("rule", "*.bin=lz4hc:3"), ("codecs", "one")]).is_ok());
}

#[test]
fn uuids_and_labels_are_kept_as_typed() {
    let uuid = ("uuid", "00112233-4455-6677-8899-aabbccddeeff");
    let set = options(None, "none", &[uuid, ("label", "root")]).unwrap();
    assert_eq!(
        set.typed.uuid,
        Uuid::Is([
            0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff
        ])
    );
    assert_eq!(&set.typed.label.unwrap()[..5], b"root\0");
}

fn for_goal(goal: Goal, set: &[(&str, &str)]) -> Options {
    Options::new(&PackSettings { optimize: goal, ..packfs_testkit::settings(None, None, set) }).unwrap()
}

#[test]
fn goals_size_and_read_make_metadata_compact_if_the_kernel_supports_it() {
    let compact = |goal, set: &[(&str, &str)]| {
        let options = for_goal(goal, set);
        (options.wide, options.dot_omitted, options.metabox.map(|metabox| metabox.cluster_len))
    };
    for goal in [Goal::Size, Goal::Read] {
        assert_eq!(compact(goal, &[]), (false, false, None), "{goal:?}");
        assert_eq!(compact(goal, &[("kernel", "6.12")]), (false, false, None));
        assert_eq!(compact(goal, &[("kernel", "6.16")]), (true, true, None));
        assert_eq!(compact(goal, &[("kernel", "6.18"), ("48bit", "off")]), (false, false, None));
        assert_eq!(compact(goal, &[("kernel", "6.18"), ("metabox", "off")]), (true, true, None));
        // The needs of another option are not requests.
        assert_eq!(compact(goal, &[("48bit", "on")]), (true, false, None));
    }
    assert_eq!(compact(Goal::Size, &[("kernel", "6.17")]), (true, true, Some(64 << 10)));
    assert_eq!(compact(Goal::Read, &[("kernel", "6.18")]), (true, true, Some(16 << 10)));
    assert_eq!(compact(Goal::Size, &[("kernel", "6.18"), ("metabox", "1M")]).2, Some(1 << 20));
    for goal in [Goal::Balanced, Goal::Build] {
        assert_eq!(compact(goal, &[("kernel", "6.18")]), (false, false, None));
    }
}

#[test]
fn small_images_of_quick_codecs_share_ranges_and_others_have_one_stream() {
    let sharing = |codec: &str, set: &[(&str, &str)]| {
        let settings = packfs_testkit::settings(Some(codec), None, set);
        let options = Options::new(&PackSettings { optimize: Goal::Size, ..settings }).unwrap();
        (options.fragments, options.dedupe)
    };
    for codec in ["lz4", "lz4hc:12", "zstd:3", "zstd:9"] {
        assert_eq!(sharing(codec, &[]), (Fragments::Tails, Dedupe::Ranges), "{codec}");
    }
    for codec in ["zstd:15", "lzma", "deflate:9"] {
        assert_eq!(sharing(codec, &[]), (Fragments::All, Dedupe::Files), "{codec}");
    }
    assert_eq!(sharing("lz4", &[("fragments", "all")]), (Fragments::All, Dedupe::Files));
    assert_eq!(sharing("lz4", &[("fragments", "off")]), (Fragments::Off, Dedupe::Files));
    assert_eq!(sharing("lz4", &[("dedupe", "off")]), (Fragments::All, Dedupe::Off));
    assert_eq!(sharing("lz4", &[("dedupe", "ranges")]), (Fragments::Tails, Dedupe::Ranges));
    assert_eq!(sharing("lz4", &[("interlaced", "on")]), (Fragments::All, Dedupe::Files));
    assert_eq!(sharing("lz4", &[("kernel", "5.16")]), (Fragments::Off, Dedupe::Files));
}

#[test]
fn small_images_without_a_packed_stream_keep_last_clusters_beside_their_inodes() {
    let inline = |goal, set: &[(&str, &str)]| for_goal(goal, set).inline_clusters;
    assert!(inline(Goal::Size, &[("fragments", "off")]));
    assert!(!inline(Goal::Size, &[]));
    assert!(!inline(Goal::Size, &[("fragments", "off"), ("inline-tails", "off")]));
    assert!(!inline(Goal::Size, &[("kernel", "5.16")]));
    assert!(!inline(Goal::Read, &[("fragments", "off")]));
}
