//! Every layout that mkfs.erofs writes, read by packfs as the kernel reads it: equal walks, equal
//! contents.

use crate::common::read_image;
use packfs_core::{ErrorKind, Silent};
use packfs_format::{Finding, Severity};
use packfs_testkit::{
    Compare, Mount, Peer, Snapshot, is_root, odd_tree, peer, peer_since, skip, snapshot_dir, snapshot_tree,
    write_dir,
};
use std::path::Path;

/// One image: its name, and what mkfs.erofs is asked for.
type Row = (&'static str, &'static [&'static str]);

const LAYOUTS: &[Row] = &[
    ("plain", &["-E^inline_data"]),
    ("inline", &[]),
    ("inline, compact inodes", &["-Eforce-inode-compact"]),
    ("inline, extended inodes", &["-Eforce-inode-extended"]),
    ("inline, 1K blocks", &["-b1024"]),
    ("inline, 512-byte blocks", &["-b512"]),
    ("inline, plain times", &["-T1000000000", "--all-time"]),
    ("inline, 48 bits", &["-E48bit"]),
    ("dot omitted", &["-Edot-omitted"]),
    ("chunks", &["--chunksize=4096"]),
    ("chunks of 16K, block map", &["--chunksize=16384", "-Eforce-inode-blockmap"]),
    ("chunks of 64K, indexes", &["--chunksize=65536", "-Eforce-chunk-indexes"]),
    ("chunks, 512-byte blocks", &["-b512", "--chunksize=4096"]),
    ("no shared xattrs", &["-x65535"]),
    ("all xattrs shared", &["-x0"]),
    ("xattr prefix", &["--xattr-prefix=user.o", "--xattr-prefix=trusted.overlay."]),
    ("plain xattr prefix", &["-Eplain-xattr-prefixes", "--xattr-prefix=user.o"]),
    ("digests outside of all namespaces", &["--xattr-inode-digest=erofs.fingerprint.v1"]),
    ("digests as attributes", &["--xattr-inode-digest=trusted.digest"]),
    ("no checksum", &["-Enosbcrc"]),
    ("metadata zone", &["--MZ=id"]),
];

const CLUSTERS: &[Row] = &[
    ("lz4", &["-zlz4"]),
    ("lz4hc", &["-zlz4hc,12"]),
    ("lzma", &["-zlzma,1"]),
    ("deflate", &["-zdeflate,1"]),
    ("libdeflate", &["-zlibdeflate,1"]),
    ("zstd", &["-zzstd,1"]),
    ("lz4 4K", &["-zlz4", "-C4096"]),
    ("lz4 16K", &["-zlz4", "-C16384"]),
    ("lz4 1M", &["-zlz4", "-C1048576"]),
    ("lzma 1M", &["-zlzma,1", "-C1048576"]),
    ("deflate 16K", &["-zdeflate,1", "-C16384"]),
    ("zstd 64K", &["-zzstd,1", "-C65536"]),
    ("zstd 1M", &["-zzstd,1", "-C1048576"]),
    ("full index", &["-zlz4", "-Elegacy-compress"]),
    ("full index, 64K", &["-zlz4", "-C65536", "-Elegacy-compress"]),
    ("tail packing", &["-zlz4", "-Eztailpacking"]),
    ("tail packing, 64K", &["-zlz4hc,12", "-C65536", "-Eztailpacking"]),
    ("tail packing, full index", &["-zlz4", "-Eztailpacking,legacy-compress"]),
    ("tail packing, zstd", &["-zzstd,1", "-C16384", "-Eztailpacking"]),
    ("fragments", &["-zlz4", "-C16384", "-Efragments"]),
    ("fragments, full index", &["-zlz4", "-C16384", "-Efragments,legacy-compress"]),
    ("fragments, lzma", &["-zlzma,1", "-C65536", "-Efragments"]),
    ("all fragments", &["-zzstd,1", "-C65536", "-Eall-fragments"]),
    ("all fragments, deflate", &["-zdeflate,1", "-C65536", "-Eall-fragments"]),
    ("dedupe", &["-zlz4", "-C16384", "-Ededupe"]),
    ("dedupe, lzma", &["-zlzma,1", "-C65536", "-Ededupe"]),
    ("dedupe, deflate", &["-zdeflate,1", "-C65536", "-Ededupe"]),
    ("dedupe, zstd", &["-zzstd,1", "-C65536", "-Ededupe"]),
    ("dedupe and fragments", &["-zlz4hc,1", "-C65536", "-Ededupe,all-fragments"]),
    ("48 bits, lz4", &["-zlz4", "-C65536", "-E48bit"]),
    ("48 bits, lzma", &["-zlzma,1", "-C65536", "-E48bit"]),
    ("48 bits, deflate", &["-zdeflate,1", "-C65536", "-E48bit"]),
    ("48 bits, zstd", &["-zzstd,1", "-C65536", "-E48bit"]),
    ("48 bits, zstd 4K", &["-zzstd,1", "-C4096", "-E48bit"]),
    ("48 bits, fragments", &["-zzstd,1", "-C65536", "-E48bit,fragments"]),
    ("48 bits, all fragments", &["-zzstd,1", "-C65536", "-E48bit,all-fragments"]),
    ("48 bits, dedupe", &["-zzstd,1", "-C65536", "-E48bit,dedupe"]),
    ("48 bits, dedupe and fragments", &["-zlz4", "-C65536", "-E48bit,dedupe,fragments"]),
    ("48 bits, short extents", &["-zzstd,1", "-C65536", "-E48bit", "--max-extent-bytes=65536"]),
    ("48 bits, unaligned extents", &["-zzstd,1", "-C65536", "-E48bit", "--max-extent-bytes=-65536"]),
    ("metabox", &["-zlz4", "-C65536", "-m65536"]),
    ("metabox, zstd", &["-zzstd,1", "-C65536", "-E48bit,fragments", "-m65536"]),
    ("metabox of its own codec", &["-m16384:zstd,3", "-zlz4:zstd,3", "-C16384"]),
    ("metabox and tail packing", &["-zlz4", "-C65536", "-Eztailpacking", "-m65536"]),
    ("metabox and xattr prefix", &["-zlz4", "-C65536", "-m65536", "--xattr-prefix=user.o"]),
    ("fragments and xattr prefix", &["-zlz4", "-Efragments", "--xattr-prefix=user.o"]),
    ("directories compressed", &["-zlz4", "-C16384", "-Efragments", "--zD=0"]),
    ("512-byte blocks, lz4", &["-zlz4", "-b512"]),
    ("512-byte blocks, 64K", &["-zzstd,1", "-b512", "-C65536"]),
    ("1K blocks, lzma", &["-zlzma,1", "-b1024", "-C16384"]),
    ("2K blocks, tail packing", &["-zlz4", "-b2048", "-Eztailpacking"]),
    ("1K blocks, fragments", &["-zdeflate,1", "-b1024", "-C8192", "-Efragments"]),
    ("512-byte blocks, 48 bits", &["-zzstd,1", "-b512", "-C16384", "-E48bit"]),
    ("512-byte blocks, dedupe", &["-zlz4", "-b512", "-C16384", "-Ededupe"]),
];

fn make(mkfs: &Peer, options: &[&str], image: &Path, sources: &[&Path]) -> Result<(), String> {
    let _ = std::fs::remove_file(image);
    let mut command = mkfs.command(&[]);
    command
        .args(["--quiet", "-U5f0bbb74-d0ba-4ba5-a69f-65d5d5d9d0ba"])
        .args(options)
        .arg(image)
        .args(sources);
    let output = command.output().unwrap();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into()) }
}

/// Reads an image and compares it with the kernel's mount; returns what packfs and its check say.
#[track_caller]
fn agrees_with_the_kernel(image: &Path, what: &str) -> (Snapshot, Vec<Finding>) {
    let (snapshot, findings) = read_image(image);
    let mount = Mount::new(image, "erofs").unwrap_or_else(|e| panic!("{what}: {e}"));
    let compare = Compare { nanos: true, ..Compare::default() };
    snapshot.assert_same(&snapshot_dir(&mount.path()), compare, what);
    (snapshot, findings)
}

fn agrees_on(rows: &[Row], block_len: usize) {
    let Some(mkfs) = peer("mkfs.erofs").filter(|_| is_root()) else {
        return skip("mounting and owners need root");
    };
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    std::fs::create_dir(&source).unwrap();
    let (tree, contents) = odd_tree(block_len, true);
    write_dir(&tree, &contents, &source);
    let expected = snapshot_dir(&source);
    let image = folder.path().join("image");
    for (what, options) in rows {
        make(&mkfs, options, &image, &[&source]).unwrap_or_else(|e| panic!("{what}: {e}"));
        let (snapshot, findings) = agrees_with_the_kernel(&image, what);
        assert_eq!(findings, [], "{what}");
        for (path, row) in &expected.0 {
            let found = snapshot.0.get(path).unwrap_or_else(|| panic!("{what}: {path:?} is missing"));
            assert_eq!(found.content, row.content, "{what}: {path:?}");
        }
        assert_eq!(snapshot.0.len(), expected.0.len(), "{what}");
    }
}

#[test]
fn agrees_with_the_kernel_on_every_layout_without_compression() {
    agrees_on(LAYOUTS, 4096);
}

#[test]
fn agrees_with_the_kernel_on_every_layout_of_clusters() {
    agrees_on(CLUSTERS, 64 << 10);
}

#[test]
fn reads_blobs_of_further_devices() {
    let Some(mkfs) = peer("mkfs.erofs").filter(|_| is_root()) else {
        return skip("mounting and owners need root");
    };
    let folder = tempfile::tempdir().unwrap();
    let (source, image, blob) =
        (folder.path().join("source"), folder.path().join("image"), folder.path().join("blob"));
    std::fs::create_dir(&source).unwrap();
    let (tree, contents) = odd_tree(16 << 10, true);
    write_dir(&tree, &contents, &source);
    let blobdev = format!("--blobdev={}", blob.display());
    make(&mkfs, &["--chunksize=4096", &blobdev], &image, &[&source]).unwrap();
    let opened = packfs::OpenOptions::new().device(&blob).open(&image).unwrap();
    let loaded = opened.load(&Silent).unwrap();
    let snapshot = snapshot_tree(&loaded.tree, &**opened.engine());
    // mkfs.erofs marks directories for overlayfs that hold whiteouts.
    let compare = Compare { nanos: true, xattrs: false, ..Compare::default() };
    snapshot.assert_same(&snapshot_dir(&source), compare, "blob");
    let mut findings = Vec::new();
    opened.volume().check(&mut |finding| findings.push(finding)).unwrap();
    assert_eq!(findings, []);
    let target = folder.path().join("target");
    opened.unpack(&target).unwrap();
    snapshot_dir(&target).assert_same(&snapshot_dir(&source), compare, "unpacked");
}

#[test]
fn reports_missing_devices_and_the_expected_number() {
    let Some(mkfs) = peer_since("mkfs.erofs", "1.5") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (source, image, blob) =
        (folder.path().join("source"), folder.path().join("image"), folder.path().join("blob"));
    std::fs::create_dir(&source).unwrap();
    std::fs::write(source.join("file"), vec![7; 10_000]).unwrap();
    let blobdev = format!("--blobdev={}", blob.display());
    make(&mkfs, &["--chunksize=4096", &blobdev], &image, &[&source]).unwrap();
    let alone = packfs::open(&image).unwrap();
    let error = alone.read("file").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed, "{error}");
    assert!(error.to_string().contains("device 1 of the image, which is not given"), "{error}");
    let mut findings = Vec::new();
    alone.volume().check(&mut |finding| findings.push(finding)).unwrap();
    assert!(findings.iter().all(|finding| finding.severity == Severity::Note), "{findings:?}");
    let too_many = packfs::OpenOptions::new().device(&blob).device(&blob).open(&image).err().unwrap();
    assert_eq!(too_many.kind(), ErrorKind::Usage);
    assert!(
        too_many.to_string().contains("2 further devices are given, but the image lists 1"),
        "{too_many}"
    );
}

/// A tar that is only indexed: the image's data are ranges of the tar, given as a device or joined
/// behind the image.
#[test]
fn reads_an_indexed_tar() {
    let Some(mkfs) = peer("mkfs.erofs").filter(|_| is_root()) else {
        return skip("owners need root");
    };
    let folder = tempfile::tempdir().unwrap();
    let (source, tar, image) =
        (folder.path().join("source"), folder.path().join("tar"), folder.path().join("image"));
    std::fs::create_dir(&source).unwrap();
    let (tree, contents) = odd_tree(4096, true);
    write_dir(&tree, &contents, &source);
    for socket in ["socket", "xattrs/socket"] {
        std::fs::remove_file(source.join(socket)).unwrap();
    }
    let mut gnu_tar = std::process::Command::new("tar");
    gnu_tar.args(["--create", "--numeric-owner", "--xattrs", "--xattrs-include=*", "--format=posix"]);
    gnu_tar.arg("--file").arg(&tar).arg("--directory").arg(&source).arg(".");
    assert!(gnu_tar.output().unwrap().status.success());
    make(&mkfs, &["--tar=i"], &image, &[&tar]).unwrap();
    let expected = snapshot_dir(&source);
    // Hard links of other things than files become several of them.
    let compare = Compare { hard_links: false, root: false, ..Compare::default() };
    let read = |options: packfs::OpenOptions, image: &Path, what: &str| {
        let opened = options.open(image).unwrap();
        let loaded = opened.load(&Silent).unwrap();
        snapshot_tree(&loaded.tree, &**opened.engine()).assert_same(&expected, compare, what);
    };
    read(packfs::OpenOptions::new().device(&tar), &image, "tar as a device");
    let mut joined = std::fs::read(&image).unwrap();
    joined.extend(std::fs::read(&tar).unwrap());
    let whole = folder.path().join("whole");
    std::fs::write(&whole, joined).unwrap();
    read(packfs::OpenOptions::new(), &whole, "tar behind the image");
}

/// Images made of other images: by references to those, which are then devices, by copies of their
/// data, and in place.
#[test]
fn reads_images_rebuilt_from_others() {
    let Some(mkfs) = peer("mkfs.erofs").filter(|_| is_root()) else {
        return skip("mounting and owners need root");
    };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (lower, upper, merged) = (path("lower"), path("upper"), path("merged"));
    std::fs::create_dir(&lower).unwrap();
    std::fs::create_dir_all(upper.join("added/deep")).unwrap();
    let (tree, contents) = odd_tree(4096, true);
    write_dir(&tree, &contents, &lower);
    std::fs::write(upper.join("added/deep/file"), vec![7; 30_000]).unwrap();
    std::fs::write(upper.join("added/empty"), "").unwrap();
    std::os::unix::fs::symlink("added/deep", upper.join("link")).unwrap();
    let images = [path("lower.img"), path("upper.img")];
    make(&mkfs, &["-E^inline_data"], &images[0], &[&lower]).unwrap();
    make(&mkfs, &["-E^inline_data"], &images[1], &[&upper]).unwrap();
    let sources: Vec<&Path> = images.iter().map(|image| image.as_path()).collect();

    make(&mkfs, &[], &merged, &sources).unwrap();
    let mount = Mount::with_devices(&merged, "erofs", &sources).unwrap();
    let expected = snapshot_dir(&mount.path());
    drop(mount);
    assert!(expected.0.len() > snapshot_dir(&lower).0.len());
    let opened = packfs::OpenOptions::new().device(&images[0]).device(&images[1]).open(&merged).unwrap();
    let loaded = opened.load(&Silent).unwrap();
    let all = Compare { nanos: true, ..Compare::default() };
    snapshot_tree(&loaded.tree, &**opened.engine()).assert_same(&expected, all, "by reference");
    let mut findings = Vec::new();
    opened.volume().check(&mut |finding| findings.push(finding)).unwrap();
    findings.retain(|finding| finding.severity > Severity::Note);
    // Every kernel that knows the devices knows the chunks, too.
    let texts: Vec<_> = findings.iter().map(|finding| (finding.severity, &*finding.fault)).collect();
    let told = "uses chunked_file, but does not announce it";
    assert!(matches!(&*texts, [(Severity::Warning, text)] if text.contains(told)), "{texts:?}");

    make(&mkfs, &["--clean=data"], &merged, &sources).unwrap();
    let (copied, findings) = agrees_with_the_kernel(&merged, "by copy");
    assert_eq!(findings, []);
    // The root has the time of making.
    copied.assert_same(&expected, Compare { root: false, ..all }, "by copy");

    std::fs::copy(&images[0], &merged).unwrap();
    let mut command = mkfs.command(&[&"--quiet", &"--incremental=data", &merged, &upper]);
    assert!(command.output().unwrap().status.success());
    let (grown, findings) = agrees_with_the_kernel(&merged, "in place");
    // The directories that were replaced are still counted.
    let faults: Vec<_> = findings.iter().map(|finding| (finding.severity, &*finding.fault)).collect();
    assert!(matches!(&*faults, [(Severity::Warning, fault)] if fault.contains("are reached")), "{faults:?}");
    assert_eq!(grown.0.len(), expected.0.len());
}

/// Layers that are indexed tars, merged: the image leads into the tars.
#[test]
fn reads_merged_layers_of_indexed_tars() {
    let Some(mkfs) = peer("mkfs.erofs").filter(|_| is_root()) else {
        return skip("mounting and owners need root");
    };
    let folder = tempfile::tempdir().unwrap();
    let layers = ["lower", "upper"].map(|name| {
        let (source, tar) = (folder.path().join(name), folder.path().join(format!("{name}.tar")));
        std::fs::create_dir_all(source.join("dir")).unwrap();
        std::fs::write(source.join("dir").join(name), vec![name.len() as u8; 70_000]).unwrap();
        std::fs::write(source.join("both"), format!("from {name}")).unwrap();
        let mut gnu_tar = std::process::Command::new("tar");
        gnu_tar.arg("--create").arg("--file").arg(&tar).arg("--directory").arg(&source).arg(".");
        assert!(gnu_tar.output().unwrap().status.success());
        let image = folder.path().join(format!("{name}.img"));
        make(&mkfs, &["--tar=i"], &image, &[&tar]).unwrap();
        (image, tar)
    });
    let merged = folder.path().join("merged");
    make(&mkfs, &[], &merged, &layers.each_ref().map(|layer| &*layer.0)).unwrap();
    let tars = layers.each_ref().map(|layer| &*layer.1);
    let opened = packfs::OpenOptions::new().device(tars[0]).device(tars[1]).open(&merged).unwrap();
    assert_eq!(opened.read("both").unwrap(), b"from upper");
    let loaded = opened.load(&Silent).unwrap();
    let mount = Mount::with_devices(&merged, "erofs", &tars).unwrap();
    let all = Compare { nanos: true, ..Compare::default() };
    let expected = snapshot_dir(&mount.path());
    snapshot_tree(&loaded.tree, &**opened.engine()).assert_same(&expected, all, "merged");
    assert_eq!(expected.0.len(), 5);
}

/// mkfs.erofs 1.9 does not rotate the data of an interlaced plain cluster that it puts behind an
/// inode, but kernels rotate it back. The data is read as it was written, and the check says what
/// kernels do to it.
#[test]
fn reports_tails_that_kernels_misread() {
    let Some(mkfs) = peer("mkfs.erofs").filter(|_| is_root()) else {
        return skip("owners need root");
    };
    let folder = tempfile::tempdir().unwrap();
    let (source, image) = (folder.path().join("source"), folder.path().join("image"));
    std::fs::create_dir(&source).unwrap();
    let (tree, contents) = odd_tree(64 << 10, true);
    write_dir(&tree, &contents, &source);
    make(&mkfs, &["-zlz4", "-C16384", "-Efragments,ztailpacking"], &image, &[&source]).unwrap();
    let (snapshot, findings) = read_image(&image);
    // It marks directories for overlayfs that hold whiteouts.
    let compare = Compare { nanos: true, xattrs: false, ..Compare::default() };
    snapshot.assert_same(&snapshot_dir(&source), compare, "as written");
    let texts: Vec<_> = findings.iter().map(|finding| &*finding.fault).collect();
    assert!(matches!(&*texts, [text] if text.contains("kernels misread")), "{texts:?}");
}
