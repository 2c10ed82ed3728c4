//! Inputs other than images: archives, manifests, blocks, requests.

use super::{Base, images, integrity, shards};
use crate::input::Input;
use crate::judge::open;
use packfs::{Result, Silent};
use packfs_codec::{Algorithm, CODECS, CodecSpec, DictLens, encoder};
use packfs_testkit::Random;

/// Valid inputs of a kind, the same in every run.
///
/// # Errors
/// As of packing and reading images.
pub fn inputs(kind: Input) -> Result<Vec<Base>> {
    match kind {
        Input::Image => all_images(),
        Input::Tar => archives(),
        Input::Manifest => manifests(),
        Input::Block => Ok(blocks()),
        Input::Requests => Ok(requests()),
        Input::Recovery => integrity::recovery(),
        Input::Verity => integrity::verity(),
        Input::Signature => Ok(integrity::signatures()),
        Input::Measured => Ok(integrity::measured()),
        Input::Shards => shards::plans(),
    }
}

fn all_images() -> Result<Vec<Base>> {
    let folder = tempfile::tempdir().map_err(|error| packfs::Error::io("no temporary folder", error))?;
    let mut all = both_formats()?;
    for kind in super::kinds().into_iter().filter(|kind| !matches!(*kind, "squashfs" | "erofs")) {
        all.extend(images(kind, folder.path())?);
    }
    Ok(all)
}

fn both_formats() -> Result<Vec<Base>> {
    let folder = tempfile::tempdir().map_err(|error| packfs::Error::io("no temporary folder", error))?;
    let mut all = images("squashfs", folder.path())?;
    all.extend(images("erofs", folder.path())?);
    Ok(all)
}

fn named(name: &str, bytes: impl Into<Vec<u8>>) -> Base {
    Base { name: name.into(), bytes: bytes.into() }
}

/// One by our own writer, plain and compressed; sparse members as GNU tar writes them, which it
/// never writes.
fn archives() -> Result<Vec<Base>> {
    let image = both_formats()?.swap_remove(0);
    let mut plain = Vec::new();
    open(&image.bytes, 1)?.write_tar(&mut plain)?;
    let mut all = vec![named("tar", plain.clone())];
    for spec in ["zstd:1", "xz:1"] {
        all.push(named(spec, compressed(spec, &plain[..plain.len().min(60_000)])));
    }
    all.push(named("old sparse", old_sparse()));
    all.push(named("pax sparse", pax_sparse()));
    all.push(named("long names", long_names()));
    all.extend(super::archives::bases(&|plain| compressed("zstd:1", plain)));
    Ok(all)
}

fn header(name: &str, kind: u8, len: usize) -> [u8; 512] {
    let mut block = [0; 512];
    block[..name.len().min(100)].copy_from_slice(&name.as_bytes()[..name.len().min(100)]);
    block[100..108].copy_from_slice(b"0000644\0");
    block[108..116].copy_from_slice(b"0001750\0");
    block[116..124].copy_from_slice(b"0001750\0");
    block[124..136].copy_from_slice(format!("{len:011o}\0").as_bytes());
    block[136..148].copy_from_slice(b"14000000000\0");
    block[156] = kind;
    block[257..265].copy_from_slice(b"ustar  \0");
    block
}

/// Sums a header up, after which `data` follows, padded.
fn member(mut block: [u8; 512], data: &[u8]) -> Vec<u8> {
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut bytes = block.to_vec();
    bytes.extend_from_slice(data);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn old_sparse() -> Vec<u8> {
    let mut block = header("sparse", b'S', 1024);
    for (index, (at, len)) in [(4096_usize, 512_usize), (20_000, 512), (30_000, 0)].into_iter().enumerate() {
        let entry = 386 + 24 * index;
        block[entry..entry + 12].copy_from_slice(format!("{at:011o}\0").as_bytes());
        block[entry + 12..entry + 24].copy_from_slice(format!("{len:011o}\0").as_bytes());
    }
    block[483..495].copy_from_slice(format!("{:011o}\0", 30_000).as_bytes());
    let mut bytes = member(block, &[b'd'; 1024]);
    bytes.extend([0; 1024]);
    bytes
}

fn pax_record(key: &str, value: &str) -> String {
    let body = format!(" {key}={value}\n");
    let mut len = body.len() + 1;
    while format!("{len}{body}").len() != len {
        len += 1;
    }
    format!("{len}{body}")
}

fn pax_sparse() -> Vec<u8> {
    let records: String = [
        ("GNU.sparse.major", "1"),
        ("GNU.sparse.minor", "0"),
        ("GNU.sparse.name", "sparse"),
        ("GNU.sparse.realsize", "100000"),
        ("mtime", "1700000000.123456789"),
        ("SCHILY.xattr.user.a", "value"),
    ]
    .into_iter()
    .map(|(key, value)| pax_record(key, value))
    .collect();
    let mut map = b"2\n0\n512\n90000\n1000\n".to_vec();
    map.resize(512, 0);
    map.extend([b'm'; 1512]);
    let mut bytes = member(header("PaxHeaders/sparse", b'x', records.len()), records.as_bytes());
    bytes.extend(member(header("GNUSparseFile.1/sparse", b'0', map.len()), &map));
    bytes.extend([0; 1024]);
    bytes
}

fn long_names() -> Vec<u8> {
    let name = "n/".repeat(90) + "file\0";
    let mut bytes = member(header("././@LongLink", b'L', name.len()), name.as_bytes());
    bytes.extend(member(header("short", b'0', 3), b"abc"));
    let mut link = header("link", b'1', 0);
    link[157..162].copy_from_slice(b"short");
    bytes.extend(member(link, b""));
    let global = pax_record("uid", "4000000000");
    bytes.extend(member(header("global", b'g', global.len()), global.as_bytes()));
    bytes.extend(member(header("after", b'0', 1), b"z"));
    let mut device = header("dev", b'4', 0);
    device[329..337].copy_from_slice(b"0000010\0");
    device[337..345].copy_from_slice(b"0000001\0");
    bytes.extend(member(device, b""));
    bytes.extend([0; 1024]);
    bytes
}

fn manifests() -> Result<Vec<Base>> {
    let image = both_formats()?.swap_remove(0);
    let mut written = Vec::new();
    packfs::source::write_manifest(&open(&image.bytes, 1)?.load(&Silent)?.tree, &mut written)?;
    let typed: &[u8] = b"#packfs-manifest 1\n# words\ndefault uid=1 gid=2 mtime=-1.5\ndefault dir mode=0755\ndir /\r\n\
        char /dev/null mode=0666 major=1 minor=3\nfile /a data=\"box\\n\\x00\" xattr.\"user.a=b\"=\"\\\"\\\\\\t\"\n\
        link /b target=/a\nsymlink /c target=../proc\nfile \"/d e\" mode=4755 size=1073741824\nfifo /f\nsocket /s\n\
        block /x/y/z major=4095 minor=1048575\n";
    Ok(vec![named("written", written), named("typed", typed)])
}

fn settings(spec: &str) -> Option<(Algorithm, Box<dyn packfs_codec::Encoder>)> {
    // MicroLZMA shares its name with the other LZMA.
    let (spec, left_out) = match spec.strip_prefix("micro") {
        Some(spec) => (spec, Algorithm::LzmaAlone),
        None => (spec, Algorithm::MicroLzma),
    };
    let algorithms: Vec<_> = Algorithm::ALL.into_iter().filter(|&algorithm| algorithm != left_out).collect();
    let spec: CodecSpec = spec.parse().ok()?;
    let settings = spec.resolve(&algorithms, DictLens::of_block(64 << 10)).ok()??;
    Some((settings.algorithm(), encoder(&settings).ok()?))
}

fn compressed(spec: &str, plain: &[u8]) -> Vec<u8> {
    let Some((_, mut encoder)) = settings(spec) else { return Vec::new() };
    let mut out = vec![0; plain.len() + 4096];
    let len = encoder.compress(plain, &mut out).ok().flatten().unwrap_or(0);
    out.truncate(len);
    out
}

/// Short and long blocks of every codec, of text, of noise and of one byte again and again.
fn blocks() -> Vec<Base> {
    let mut random = Random::new(3);
    let mut all = Vec::new();
    for spec in specs() {
        let spec = &*spec;
        for (what, plain) in [
            ("text", random.text(3000)),
            ("a byte", vec![b'a'; 2000]),
            ("short", random.text(40)),
            ("long", random.text(40_000)),
            ("both", [random.text(300), random.noise(300), random.text(300)].concat()),
        ] {
            let Some((algorithm, _)) = settings(spec) else { continue };
            let packed = compressed(spec, &plain);
            all.push(block(&format!("{spec} {what}"), algorithm, plain.len(), &packed));
            if spec == "lzma" {
                all.extend(reframed(what, plain.len(), &packed));
            }
        }
    }
    all
}

/// Every codec, at its default, its lowest level and its highest, and options that change blocks.
fn specs() -> Vec<String> {
    let further =
        ["gzip:9,window=8", "microlzma", "lzo,variant=1_15", "xz,bcj=x86", "xz,bcj=arm64", "zstd:1"];
    let mut specs: Vec<String> = further.map(str::to_owned).into();
    for codec in CODECS {
        specs.push(codec.name.into());
        let ends = codec.levels.iter().flat_map(|levels| [levels.start(), levels.end()]);
        specs.extend(ends.map(|level| format!("{}:{level}", codec.name)));
    }
    specs
}

/// A block for the property that tries decoders.
fn block(name: &str, algorithm: Algorithm, len: usize, packed: &[u8]) -> Base {
    let index = Algorithm::ALL.iter().position(|&known| known == algorithm).unwrap_or(0) as u8;
    let len = len.to_le_bytes();
    Base { name: name.into(), bytes: [&[index, len[0], len[1]], packed].concat() }
}

/// A `.lzma` block in the framings of device makers, but for the one whose properties are others.
fn reframed(what: &str, len: usize, alone: &[u8]) -> Vec<Base> {
    let Some((head, stream)) = alone.split_first_chunk::<13>() else { return Vec::new() };
    let (props, len32) = (&head[..5], &head[5..9]);
    [
        (Algorithm::LzmaProps, [props, stream].concat()),
        (Algorithm::LzmaLenProps, [len32, props, stream].concat()),
        (Algorithm::LzmaPropsLen, [props, len32, stream].concat()),
        (Algorithm::LzmaPbLcLp, [&[2, 3, 0, 0xff], stream].concat()),
        (Algorithm::Sqlzma, alone.to_vec()),
    ]
    .map(|(algorithm, packed)| block(&format!("{algorithm} {what}"), algorithm, len, &packed))
    .into()
}

fn requests() -> Vec<Base> {
    let mut random = Random::new(4);
    let mut all: Vec<Base> = (0..80_u8)
        .map(|which| {
            let mut bytes = vec![which, which % 4];
            bytes.extend(random.noise(400));
            Base { name: format!("requests to image {which}"), bytes }
        })
        .collect();
    // One raw header, as the kernel sends it: look up "dir0" in the root.
    let mut raw = [0; 40];
    raw[4] = 1;
    raw[16] = 1;
    all.push(Base { name: "raw".into(), bytes: [&[0, 2], &raw[..], b"dir0\0"].concat() });
    all
}
