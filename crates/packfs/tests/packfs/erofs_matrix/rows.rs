//! Contents of images: the layouts, codecs, cluster sizes, and features of EROFS, as options of
//! each writer.

/// Options of packfs: codec, cluster length, options of the format.
pub type Packfs = (&'static str, u32, &'static [(&'static str, &'static str)]);

/// One way to make an image.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub name: &'static str,
    pub mkfs: &'static [&'static str],
    pub packfs: Packfs,
    /// True if every run of the tests tries it.
    pub often: bool,
}

impl Row {
    /// Marks a row that every run of the tests tries.
    const fn often(self) -> Self {
        Row { often: true, ..self }
    }

    /// Returns the options of a writer.
    pub fn options(&self, writer: &str) -> String {
        if writer != "packfs" {
            return self.mkfs.join(" ");
        }
        let (codec, cluster_len, options) = self.packfs;
        let options = options.iter().map(|(name, value)| format!(" -O {name}={value}"));
        let len = cluster_len >> 10;
        format!("-c {codec} -b {len}K{}", options.collect::<String>())
    }

    /// Single options: algorithms without levels, lengths, and names of features.
    pub fn words(&self) -> Vec<String> {
        let (codec, cluster_len, options) = self.packfs;
        let codec = codec.split(':').next().unwrap_or(codec);
        let mut words = vec![format!("packfs {codec}"), format!("packfs {cluster_len}")];
        words.extend(options.iter().map(|(name, value)| format!("packfs {name}={value}")));
        for option in self.mkfs {
            match option.strip_prefix("-E") {
                Some(features) => words.extend(features.split(',').map(|name| format!("mkfs.erofs {name}"))),
                None => words.push(format!("mkfs.erofs {}", option.split(',').next().unwrap_or(option))),
            }
        }
        words
    }
}

const fn row(name: &'static str, mkfs: &'static [&'static str], packfs: Packfs) -> Row {
    Row { name, mkfs, packfs, often: false }
}

const K4: u32 = 4 << 10;
const K8: u32 = 8 << 10;
const K16: u32 = 16 << 10;
const K64: u32 = 64 << 10;
const M1: u32 = 1 << 20;

/// Files are stored as they are.
pub const LAYOUTS: &[Row] = &[
    row("plain", &["-E^inline_data"], ("none", K4, &[("inline-tails", "off")])).often(),
    row("inline", &[], ("none", K4, &[])).often(),
    row("chunks 4K", &["--chunksize=4096"], ("none", K4, &[("chunks", "4K")])),
    row(
        "chunks 64K, indexes",
        &["--chunksize=65536", "-Eforce-chunk-indexes"],
        ("none", K4, &[("chunks", "64K")]),
    )
    .often(),
    row("inline, 512-byte blocks", &["-b512"], ("none", K4, &[("block", "512")])),
    row(
        "chunks 4K, 1K blocks",
        &["-b1024", "--chunksize=4096"],
        ("none", K4, &[("block", "1K"), ("chunks", "4K")]),
    )
    .often(),
    row("inline, 48 bits", &["-E48bit"], ("none", K4, &[("48bit", "on")])).often(),
    row("dot omitted", &["-Edot-omitted"], ("none", K4, &[("dot-omitted", "on")])).often(),
];

/// Clusters and their index, and nothing else: nothing shared, nothing inline.
const BARE: &[(&str, &str)] = &[("fragments", "off"), ("inline-tails", "off")];

/// Every codec at every length of clusters.
pub const CODECS: &[Row] = &[
    row("lz4 4K", &["-zlz4", "-C4096"], ("lz4", K4, BARE)).often(),
    row("lz4 16K", &["-zlz4", "-C16384"], ("lz4", K16, BARE)),
    row("lz4 64K", &["-zlz4", "-C65536"], ("lz4", K64, BARE)),
    row("lz4 1M", &["-zlz4", "-C1048576"], ("lz4", M1, BARE)),
    row("lz4hc 4K", &["-zlz4hc,6", "-C4096"], ("lz4hc:6", K4, BARE)),
    row("lz4hc 16K", &["-zlz4hc,6", "-C16384"], ("lz4hc:6", K16, BARE)),
    row("lz4hc 64K", &["-zlz4hc,6", "-C65536"], ("lz4hc:6", K64, BARE)).often(),
    row("lz4hc 1M", &["-zlz4hc,6", "-C1048576"], ("lz4hc:6", M1, BARE)),
    row("lzma 4K", &["-zlzma,0", "-C4096"], ("lzma:0", K4, BARE)),
    row("lzma 16K", &["-zlzma,0", "-C16384"], ("lzma:0", K16, BARE)),
    row("lzma 64K", &["-zlzma,0", "-C65536"], ("lzma:0", K64, BARE)),
    row("lzma 1M", &["-zlzma,0", "-C1048576"], ("lzma:0", M1, BARE)).often(),
    row("deflate 4K", &["-zdeflate,1", "-C4096"], ("deflate:1", K4, BARE)),
    row("deflate 16K", &["-zdeflate,1", "-C16384"], ("deflate:1", K16, BARE)).often(),
    row("deflate 64K", &["-zdeflate,1", "-C65536"], ("deflate:1", K64, BARE)),
    row("deflate 1M", &["-zdeflate,1", "-C1048576"], ("deflate:1", M1, BARE)),
    row("zstd 4K", &["-zzstd,1", "-C4096"], ("zstd:1", K4, BARE)),
    row("zstd 16K", &["-zzstd,1", "-C16384"], ("zstd:1", K16, BARE)),
    row("zstd 64K", &["-zzstd,1", "-C65536"], ("zstd:1", K64, BARE)).often(),
    row("zstd 1M", &["-zzstd,1", "-C1048576"], ("zstd:1", M1, BARE)),
];

/// Index forms, tails and fragments.
pub const TAILS: &[Row] = &[
    row(
        "full index",
        &["-zlz4", "-C16384", "-Elegacy-compress"],
        ("lz4", K16, &[("fragments", "off"), ("inline-tails", "off"), ("index", "full")]),
    ),
    row("tail packing", &["-zlz4", "-C16384", "-Eztailpacking"], ("lz4", K16, &[("fragments", "off")])),
    row(
        "tail packing, full index",
        &["-zlz4", "-Eztailpacking,legacy-compress"],
        ("lz4", K4, &[("fragments", "off"), ("index", "full")]),
    )
    .often(),
    row(
        "tail packing, zstd 64K",
        &["-zzstd,1", "-C65536", "-Eztailpacking"],
        ("zstd:1", K64, &[("fragments", "off")]),
    ),
    row(
        "fragments",
        &["-zlz4", "-C16384", "-Efragments"],
        ("lz4", K16, &[("fragments", "tails"), ("inline-tails", "off")]),
    ),
    row(
        "fragments, full index",
        &["-zlz4", "-C16384", "-Efragments,legacy-compress"],
        ("lz4", K16, &[("fragments", "tails"), ("index", "full")]),
    )
    .often(),
    row(
        "fragments, lzma 64K",
        &["-zlzma,0", "-C65536", "-Efragments"],
        ("lzma:0", K64, &[("fragments", "tails")]),
    ),
    row(
        "all fragments, zstd 64K",
        &["-zzstd,1", "-C65536", "-Eall-fragments"],
        ("zstd:1", K64, &[("fragments", "all")]),
    )
    .often(),
    row(
        "all fragments, deflate 1M",
        &["-zdeflate,1", "-C1048576", "-Eall-fragments"],
        ("deflate:1", M1, &[("fragments", "all")]),
    ),
    row(
        "fragments and tail packing",
        &["-zlz4", "-C16384", "-Efragments,ztailpacking"],
        ("lz4", K16, &[("fragments", "tails")]),
    )
    .often(),
    row(
        "512-byte blocks",
        &["-zlz4", "-b512", "-C16384"],
        ("lz4", K16, &[("block", "512"), ("fragments", "off")]),
    ),
    row(
        "1K blocks, fragments",
        &["-zdeflate,1", "-b1024", "-C8192", "-Efragments"],
        ("deflate:1", K8, &[("block", "1K"), ("fragments", "tails")]),
    )
    .often(),
];

/// Sharing, 48-bit addresses and compressed metadata, and what of these meets in one image.
pub const FEATURES: &[Row] = &[
    row(
        "dedupe",
        &["-zlz4", "-C16384", "-Ededupe"],
        ("lz4", K16, &[("fragments", "off"), ("dedupe", "ranges")]),
    ),
    row(
        "dedupe, zstd 64K",
        &["-zzstd,1", "-C65536", "-Ededupe"],
        ("zstd:1", K64, &[("fragments", "off"), ("dedupe", "ranges")]),
    ),
    row(
        "dedupe and fragments",
        &["-zlz4", "-C65536", "-Ededupe,fragments"],
        ("lz4", K64, &[("fragments", "tails"), ("dedupe", "ranges")]),
    )
    .often(),
    row(
        "dedupe and all fragments",
        &["-zlz4", "-C65536", "-Ededupe,all-fragments"],
        ("lz4", K64, &[("fragments", "all"), ("dedupe", "ranges")]),
    ),
    row(
        "48 bits, lz4",
        &["-zlz4", "-C65536", "-E48bit"],
        ("lz4", K64, &[("index", "extents"), ("fragments", "off")]),
    ),
    row(
        "48 bits, lzma",
        &["-zlzma,0", "-C65536", "-E48bit"],
        ("lzma:0", K64, &[("index", "extents"), ("fragments", "off")]),
    ),
    row(
        "48 bits, deflate",
        &["-zdeflate,1", "-C65536", "-E48bit"],
        ("deflate:1", K64, &[("index", "extents"), ("fragments", "off")]),
    ),
    row(
        "48 bits, zstd",
        &["-zzstd,1", "-C65536", "-E48bit"],
        ("zstd:1", K64, &[("index", "extents"), ("fragments", "off")]),
    ),
    row(
        "48 bits, zstd 1M",
        &["-zzstd,1", "-C1048576", "-E48bit"],
        ("zstd:1", M1, &[("index", "extents"), ("fragments", "off")]),
    ),
    row(
        "48 bits, bytes",
        &["-zzstd,1", "-C65536", "-E48bit", "--max-extent-bytes=-65536"],
        ("zstd:1", K64, &[("byte-aligned", "on"), ("fragments", "off")]),
    )
    .often(),
    row(
        "48 bits, fragments",
        &["-zzstd,1", "-C65536", "-E48bit,fragments"],
        ("zstd:1", K64, &[("48bit", "on"), ("fragments", "tails")]),
    ),
    row(
        "48 bits, all fragments",
        &["-zlz4", "-C16384", "-E48bit,all-fragments"],
        ("lz4", K16, &[("index", "extents"), ("fragments", "all")]),
    ),
    row(
        "48 bits, dedupe",
        &["-zzstd,1", "-C65536", "-E48bit,dedupe"],
        ("zstd:1", K64, &[("index", "extents"), ("fragments", "off"), ("dedupe", "ranges")]),
    ),
    row(
        "48 bits, dedupe, fragments",
        &["-zlz4", "-C65536", "-E48bit,dedupe,fragments"],
        ("lz4", K64, &[("48bit", "on"), ("fragments", "tails"), ("dedupe", "ranges")]),
    )
    .often(),
    row(
        "metabox, lz4",
        &["-zlz4", "-C65536", "-m65536"],
        ("lz4", K64, &[("metabox", "64K"), ("fragments", "off")]),
    ),
    row(
        "metabox, two codecs",
        &["-m16384:zstd,3", "-zlz4:zstd,3", "-C16384"],
        ("lz4", K16, &[("metabox", "16K"), ("rule", "text-*=zstd:1"), ("fragments", "off")]),
    )
    .often(),
    row(
        "metabox, tail packing",
        &["-zlz4", "-C65536", "-Eztailpacking", "-m65536"],
        ("lz4", K64, &[("metabox", "64K"), ("fragments", "tails")]),
    )
    .often(),
    row(
        "metabox, 48 bits, fragments",
        &["-zzstd,1", "-C65536", "-E48bit,fragments", "-m65536"],
        ("zstd:1", K64, &[("metabox", "64K"), ("48bit", "on"), ("fragments", "tails")]),
    )
    .often(),
    row(
        "48 bits, 512-byte blocks",
        &["-zzstd,1", "-b512", "-C16384", "-E48bit"],
        ("zstd:1", K16, &[("block", "512"), ("index", "extents"), ("fragments", "off")]),
    )
    .often(),
    row(
        "dedupe, 512-byte blocks",
        &["-zlz4", "-b512", "-C16384", "-Ededupe"],
        ("lz4", K16, &[("block", "512"), ("dedupe", "ranges"), ("fragments", "off")]),
    ),
];

/// Every row.
pub fn all() -> impl Iterator<Item = &'static Row> {
    [LAYOUTS, CODECS, TAILS, FEATURES].into_iter().flatten()
}
