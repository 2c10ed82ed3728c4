//! The end of `packfs pack --help`: examples, and what the library's tables say of formats, codecs
//! and options.

use packfs::codec::CODECS;
use packfs::{ErrorKind, PackSettings, formats};
use std::fmt::Write;

const EXAMPLES: &str = "\
Examples:
  packfs pack rootfs root.sqfs                          a directory
  packfs pack rootfs root.erofs                         EROFS by its extension
  packfs pack rootfs root.sqfs --codec zstd:19 --block-size 1M
  packfs pack rootfs.tar.xz root.sqfs                   a tar, compressed or not
  docker export box | packfs pack - box.sqfs            a tar from a pipe
  packfs pack app.bin app.sqfs                          a single file
  packfs pack bin lib README app.sqfs                   several sources
  packfs pack base board root.sqfs --merge              merged, the last wins
  packfs pack old.sqfs new.sqfs --codec xz              another image
  packfs pack disk.img disk.cloop                       a disk image, wrapped
  packfs pack rootfs new.sqfs --base old.sqfs           reusing unchanged data
  packfs pack root.manifest root.sqfs                   a list of entries
  packfs pack rootfs root.sqfs --add 'c /dev/console 0600 0 0 5 1'
  packfs pack rootfs - -f erofs | ssh box 'cat > root'  to a pipe
  sudo packfs pack rootfs /dev/sdb2 -f erofs            to a block device
  packfs pack layer.tar layer.erofs --whiteouts overlayfs
  packfs pack rootfs root.sqfs --exclude 'var/cache/**' --root-owned --mtime @0
  packfs pack rootfs root.erofs -O device=root.blob     data in a separate file
  packfs pack rootfs root.erofs --codec zstd:15+lz4     LZ4 where it is cheap
  packfs pack rootfs root.erofs --kernel 6.1            for Linux 6.1 and newer
  packfs pack rootfs root.sqfs -O fragments=always -O exports=off";

const REPRODUCIBLE: &str = "\
Packing is reproducible: the image depends neither on the machine nor on the
time nor on the number of threads. Its creation time is that of the newest file,
or SOURCE_DATE_EPOCH; see --made-at.";

/// Examples, and the lists that are made from tables.
pub fn after_long_help() -> String {
    let mut help = format!("{EXAMPLES}\n\n{REPRODUCIBLE}\n\nCodecs (--codec NAME[:LEVEL][,KEY=VALUE...]):\n");
    // Writing to a string cannot fail.
    for row in CODECS {
        let levels = match (&row.levels, row.default_level) {
            (Some(levels), Some(default)) => {
                format!("levels {} to {}, default {default}", levels.start(), levels.end())
            }
            _ => "no levels".to_owned(),
        };
        let _ = writeln!(help, "  {:8} {}", row.name, row.description);
        let _ = writeln!(help, "  {:8} {levels}{}", "", options_text(row.options));
    }
    let _ = writeln!(help, "  {:8} stores all data uncompressed", "none");
    let packs = |format: &&dyn packfs::Format| match format.packer(&PackSettings::default()) {
        Ok(_) => true,
        Err(error) => error.kind() != ErrorKind::Unsupported,
    };
    for format in formats::all().iter().copied().filter(packs) {
        let extensions = match format.info().extensions {
            [] => String::new(),
            some => format!(" (extensions {})", some.join(", ")),
        };
        let _ = writeln!(help, "\nFormat {}{extensions}; its options (-O NAME=VALUE):", format.name());
        for row in format.info().options {
            let _ = writeln!(help, "  {} = {}  [default: {}]", row.name, row.values, row.default);
            let _ = writeln!(help, "      {}", row.help);
        }
    }
    help.trim_end().to_owned()
}

fn options_text(options: &str) -> String {
    if options.is_empty() { String::new() } else { format!("; {options}") }
}
