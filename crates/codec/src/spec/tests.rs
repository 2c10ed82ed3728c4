//! Specifications that parse, their settings, and the wording of refusals.

use crate::{
    Algorithm, BranchFilter, CodecSettings, DeflateSettings, Lz4HcSettings, Lz4Settings, LzmaFraming,
    LzmaSettings, LzoSettings, LzoVariant, XzSettings, ZlibSettings, ZlibStrategy, ZstdSettings,
};

use super::{CodecSpec, DictLens, codec_for_goal};
use crate::table::CODECS;
use packfs_core::Goal;

const BLOCK_LEN: u32 = 128 << 10;

/// All algorithms but MicroLZMA, the other framing of `lzma`.
const FRAMED: [Algorithm; 7] = [
    Algorithm::Zlib,
    Algorithm::LzmaAlone,
    Algorithm::Lzo,
    Algorithm::Xz,
    Algorithm::Lz4,
    Algorithm::Zstd,
    Algorithm::Deflate,
];

fn settings(text: &str) -> CodecSettings {
    text.parse::<CodecSpec>().unwrap().resolve(&FRAMED, DictLens::of_block(BLOCK_LEN)).unwrap().unwrap()
}

fn refusal(text: &str) -> String {
    match text.parse::<CodecSpec>() {
        Ok(spec) => spec.resolve(&FRAMED, DictLens::of_block(BLOCK_LEN)).unwrap_err().to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_bare_name_takes_the_defaults() {
    let zlib = CodecSettings::Zlib(ZlibSettings { level: 9, window_log: 15, strategies: vec![] });
    let xz =
        CodecSettings::Xz(XzSettings { preset: 6, extreme: false, dict_len: BLOCK_LEN, filters: vec![] });
    assert_eq!(settings("gzip"), zlib);
    assert_eq!(settings("lzo"), CodecSettings::Lzo(LzoSettings { variant: LzoVariant::X999, level: 8 }));
    assert_eq!(settings("lz4"), CodecSettings::Lz4(Lz4Settings { acceleration: 1 }));
    assert_eq!(settings("lz4hc"), CodecSettings::Lz4Hc(Lz4HcSettings { level: 12 }));
    assert_eq!(settings("xz"), xz);
    assert_eq!(
        settings("lzma"),
        CodecSettings::Lzma(LzmaSettings {
            framing: LzmaFraming::Alone,
            preset: 5,
            extreme: false,
            dict_len: BLOCK_LEN
        })
    );
    assert_eq!(settings("zstd"), CodecSettings::Zstd(ZstdSettings { level: 15, window_log_max: None }));
    assert_eq!(settings("deflate"), CodecSettings::Deflate(DeflateSettings { level: 9 }));
    assert_eq!("none".parse::<CodecSpec>().unwrap().resolve(&[], DictLens::of_block(BLOCK_LEN)), Ok(None));
}

#[test]
fn every_row_of_the_table_parses_at_every_level() {
    for row in CODECS {
        for level in [row.levels.as_ref().map(|l| *l.start()), row.levels.as_ref().map(|l| *l.end())] {
            let text = level.map_or(row.name.into(), |level| format!("{}:{level}", row.name));
            assert_eq!(settings(&text).algorithm(), row.algorithms[0], "{text}");
        }
    }
}

#[test]
fn options_reach_the_settings() {
    let strategies = vec![ZlibStrategy::Default, ZlibStrategy::RunLength, ZlibStrategy::HuffmanOnly];
    assert_eq!(
        settings("gzip:7,window=12,strategy=default+rle+huffman_only+rle"),
        CodecSettings::Zlib(ZlibSettings { level: 7, window_log: 12, strategies })
    );
    let filters = vec![BranchFilter::X86, BranchFilter::Arm64];
    assert_eq!(
        settings("xz:4,dict=64K,bcj=x86+arm64,extreme"),
        CodecSettings::Xz(XzSettings { preset: 4, extreme: true, dict_len: 64 << 10, filters })
    );
    let auto = |text: &str| match settings(text) {
        CodecSettings::Xz(XzSettings { filters, .. }) => {
            (filters, text.parse::<CodecSpec>().unwrap().to_string())
        }
        _ => panic!("{text} is no xz"),
    };
    assert_eq!(auto("xz:6,bcj=auto"), (BranchFilter::OLD.to_vec(), "xz:6,bcj=auto".into()));
    let (filters, spelt) = auto("xz:6,bcj=auto+arm64+x86");
    assert_eq!(filters, [BranchFilter::OLD, &[BranchFilter::Arm64]].concat());
    assert_eq!(spelt, "xz:6,bcj=auto+arm64");
    assert_eq!(
        settings("lzo:3,variant=999"),
        CodecSettings::Lzo(LzoSettings { variant: LzoVariant::X999, level: 3 })
    );
    assert_eq!(
        settings("lzo,variant=1_15"),
        CodecSettings::Lzo(LzoSettings { variant: LzoVariant::X1_15, level: 8 })
    );
    assert_eq!(settings("lz4,acceleration=65537"), CodecSettings::Lz4(Lz4Settings { acceleration: 65537 }));
    assert_eq!(settings("zstd:-5"), CodecSettings::Zstd(ZstdSettings { level: -5, window_log_max: None }));
}

#[test]
fn dictionary_follows_the_block() {
    let dict_len = |text: &str, block_len| match text
        .parse::<CodecSpec>()
        .unwrap()
        .resolve(&FRAMED, DictLens::of_block(block_len))
        .unwrap()
    {
        Some(
            CodecSettings::Xz(XzSettings { dict_len, .. })
            | CodecSettings::Lzma(LzmaSettings { framing: LzmaFraming::Alone, dict_len, .. }),
        ) => dict_len,
        other => panic!("{other:?}"),
    };
    assert_eq!(dict_len("xz", 1 << 20), 1 << 20);
    assert_eq!(dict_len("xz", 4096), 8192);
    assert_eq!(dict_len("lzma", 4096), 4096);
    assert_eq!(dict_len("xz,dict=75%", 1 << 20), 768 << 10);
    assert_eq!(dict_len("lzma,dict=50%", 1 << 20), 512 << 10);
    assert_eq!(dict_len("xz,dict=25%", 8192), 8192);
    assert_eq!(dict_len("xz,dict=1M", 1 << 20), 1 << 20);
}

#[test]
fn formats_choose_among_framings_and_refuse_codecs_that_they_lack() {
    let erofs = [Algorithm::Lz4, Algorithm::MicroLzma, Algorithm::Deflate, Algorithm::Zstd];
    let lens = DictLens { usual: 256 << 10, max: 8 << 20 };
    let resolve = |text: &str| text.parse::<CodecSpec>().unwrap().resolve(&erofs, lens);
    assert_eq!(
        resolve("lzma:6"),
        Ok(Some(CodecSettings::Lzma(LzmaSettings {
            framing: LzmaFraming::Micro,
            preset: 6,
            extreme: false,
            dict_len: 256 << 10
        })))
    );
    assert_eq!(
        resolve("lzma:9,extreme,dict=8M"),
        Ok(Some(CodecSettings::Lzma(LzmaSettings {
            framing: LzmaFraming::Micro,
            preset: 9,
            extreme: true,
            dict_len: 8 << 20
        })))
    );
    let dict_len = |text: &str, usual| match text
        .parse::<CodecSpec>()
        .unwrap()
        .resolve(&erofs, DictLens { usual, ..lens })
    {
        Ok(Some(CodecSettings::Lzma(lzma))) => lzma.dict_len,
        other => panic!("{other:?}"),
    };
    let lens_of_levels = ["lzma:6", "lzma:6,extreme", "lzma:9,extreme"].map(|text| dict_len(text, 4 << 20));
    assert_eq!(lens_of_levels, [2 << 20, 4 << 20, 8 << 20]);
    assert_eq!(dict_len("lzma:9,extreme", 8 << 20), 8 << 20);
    assert!(resolve("lzma,dict=16M").is_err());
    assert_eq!(
        resolve("gzip").unwrap_err().to_string(),
        "codec: `gzip:9` found, deflate, lz4, lz4hc, lzma, zstd, none allowed"
    );
}

#[test]
fn displays_as_it_can_be_typed() {
    for text in [
        "none",
        "gzip:9",
        "gzip:5,window=8,strategy=filtered+huffman+fixed",
        "lzo:8",
        "lzo,variant=1_11",
        "lz4",
        "lz4,acceleration=4",
        "lz4hc:12",
        "xz:6",
        "xz:0,extreme,dict=96K,bcj=x86+powerpc+arm64+riscv",
        "lzma:9,dict=25%",
        "lzma:9,extreme,dict=8M",
        "deflate:0",
        "zstd:-131072",
    ] {
        assert_eq!(text.parse::<CodecSpec>().unwrap().to_string(), text);
    }
}

#[test]
fn refuses_unknown_names_with_the_known_ones() {
    let known = "gzip, deflate, lzo, lz4, lz4hc, xz, lzma, zstd, none allowed";
    assert_eq!(refusal("bzip2:9"), format!("codec: `bzip2` found, {known}"));
    assert_eq!(refusal(""), format!("codec: `` found, {known}"));
    assert_eq!(refusal("gzip "), format!("codec: `gzip ` found, {known}"));
}

#[test]
fn refuses_levels_out_of_range() {
    assert_eq!(refusal("gzip:13"), "gzip level: 13 found, 1 to 12 allowed");
    assert_eq!(refusal("gzip:-1"), "gzip level: -1 found, 1 to 12 allowed");
    assert_eq!(refusal("gzip:265"), "gzip level: 265 found, 1 to 12 allowed");
    assert_eq!(refusal("gzip:"), "gzip level: `` found, 1 to 12 allowed");
    assert_eq!(refusal("gzip:best"), "gzip level: `best` found, 1 to 12 allowed");
    assert_eq!(refusal("lzo:0"), "lzo level: 0 found, 1 to 9 allowed");
    assert_eq!(refusal("lz4hc:13"), "lz4hc level: 13 found, 0 to 12 allowed");
    assert_eq!(refusal("xz:10"), "xz level: 10 found, 0 to 9 allowed");
    assert_eq!(refusal("lzma:10"), "lzma level: 10 found, 0 to 9 allowed");
    assert_eq!(refusal("zstd:23"), "zstd level: 23 found, -131072 to 22 allowed");
    assert_eq!(
        refusal("zstd:0"),
        "zstd level: 0 found, -131072 to -1 and 1 to 22 allowed (zstd takes 0 for its own default, 3)"
    );
    assert_eq!(refusal("lz4:1"), "lz4 level: 1 found, no level allowed");
    assert_eq!(refusal("none:1"), "none level: 1 found, no level allowed");
    assert_eq!(
        refusal("gzip:10,window=14"),
        "gzip level with a window or strategy: 10 found, 1 to 9 allowed \
         (levels 10 to 12 are for the full window of 15 and no strategy)"
    );
    assert_eq!(
        refusal("lzo:8,variant=1"),
        "lzo level: 8 found, no level allowed (only variant 999 has levels)"
    );
}

#[test]
fn refuses_options_out_of_range() {
    assert_eq!(refusal("gzip,window=16"), "gzip window: 16 found, 8 to 15 allowed");
    assert_eq!(refusal("gzip,window=300"), "gzip window: `300` found, 8 to 15 allowed");
    assert_eq!(
        refusal("gzip,strategy=fast"),
        "gzip strategy: `fast` found, default, filtered, huffman, rle, fixed, huffman_only, run_length_encoded allowed"
    );
    assert_eq!(refusal("lz4,acceleration=0"), "lz4 acceleration: 0 found, 1 to 65537 allowed");
    assert_eq!(refusal("lz4hc,acceleration=4"), "lz4hc option: `acceleration=4` found, no option allowed");
    assert_eq!(refusal("none,window=8"), "none option: `window=8` found, no option allowed");
    assert_eq!(
        refusal("gzip,extreme"),
        "gzip option: `extreme` found, window=8..15, strategy=default+filtered+huffman+rle+fixed allowed"
    );
    assert_eq!(
        refusal("lzma,"),
        "lzma option: `` found, extreme, dict=SIZE|PERCENT% allowed",
        "a comma announces an option"
    );
    assert_eq!(refusal("xz,extreme,extreme"), "xz extreme: two found, one allowed");
}

#[test]
fn refuses_dictionaries_that_headers_or_blocks_cannot_hold() {
    let lengths = "2^n or 2^n + 2^(n-1) bytes from 8K to 64M allowed";
    assert_eq!(refusal("xz,dict=4K"), format!("xz dictionary: 4K found, {lengths}"));
    assert_eq!(refusal("xz,dict=100000"), format!("xz dictionary: 100000 found, {lengths}"));
    assert_eq!(refusal("xz,dict=80%"), format!("xz dictionary: 104857 found, {lengths}"));
    assert_eq!(
        refusal("xz,dict=256K"),
        "xz dictionary: 256K found, at most 128K allowed (more than a block, or than the format knows, is of no use)"
    );
    for text in ["0%", "101%", "1G", "4096M", "", "-1"] {
        assert_eq!(
            refusal(&format!("xz,dict={text}")),
            format!("xz dict: `{text}` found, a length such as 131072, 128K or 1M, or 1% to 100% allowed")
        );
    }
}

#[test]
fn only_a_bare_name_gets_the_level_of_a_goal() {
    assert_eq!(codec_for_goal("zstd", Goal::Size), "zstd:22");
    assert_eq!(codec_for_goal("zstd", Goal::Build), "zstd:3");
    assert_eq!(codec_for_goal("zstd", Goal::Balanced), "zstd");
    assert_eq!(codec_for_goal("zstd:9", Goal::Size), "zstd:9");
    assert_eq!(codec_for_goal("xz,bcj=arm", Goal::Size), "xz,bcj=arm");
    assert_eq!(codec_for_goal("zstd+lz4", Goal::Size), "zstd:22+lz4");
    assert_eq!(codec_for_goal("none", Goal::Size), "none");
}

#[test]
fn the_levels_of_goals_parse() {
    for codec in CODECS {
        for text in [codec.for_size, codec.for_build] {
            assert!(text.starts_with(codec.name) && text.parse::<CodecSpec>().is_ok(), "{text}");
        }
    }
}
