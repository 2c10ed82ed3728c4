//! Lines that a table of options makes, each run by packfs under the name of the tool and by the
//! tool itself. `PACKFS_LINES=200` runs more of them, and `PACKFS_SEED` others.

use super::bench::Bench;
use super::call::{Call, Shows};
use packfs_testkit::peer_since;

/// Options of mksquashfs and sqfstar; alternatives are separated by bars.
const PACKING: &[&str] = &[
    "-comp xz|-comp gzip -Xcompression-level 3|-comp lz4 -Xhc|-comp zstd -Xcompression-level 3|-comp lzo",
    "-b 4096|-b 64K|-b 1M|-b 5000",
    "-noI|-noId|-noD|-noF|-noX|-no-compression",
    "-exports",
    "-no-sparse",
    "-no-tailends|-no-fragments",
    "-no-duplicates",
    "-no-hardlinks",
    "-mkfs-time 5|-mkfs-time inode|-repro-time 5|-repro-time inode|-mkfs-time -1",
    "-inode-time inode|-all-time 7",
    "-all-root|-root-owned",
    "-root-mode 0700|-root-mode u+s,o=|-root-mode 99999",
    "-root-uid 3|-root-uid none-such",
    "-root-gid 4|-root-gid root",
    "-force-file-mode 640|-force-file-mode u+x,go-w|-force-file-mode +X,u=g",
    "-force-dir-mode 2755|-force-dir-mode o=,+t|-force-dir-mode g=u,u+s-w",
    "-force-uid 7|-force-uid root",
    "-force-gid 8",
    "-uid-gid-offset 100|-uid-gid-offset -1",
    "-pseudo-override",
    "-p '/made D 9 755 1 2'|-p '/made/x D 9 755 1 2'|-p 'etc D 9 700 1 2'",
    "-p '/x F 9 600 0 0 echo x'|-p 'pipe I 9 600 1 1 f'|-p 'newpipe I 9 600 1 1 s'",
    "-p 'etc M 8 711 3 4'|-p 'etc m 700 3 4'|-p 'none M 8 711 3 4'",
    "-pd 'D 4 750 5 6' -p 'deep/er/f F 9 600 0 0 echo f'|-pd 'D 4 750 5'",
    "-p 'etc x user.y=0x41'|-p 'etc x user.y=0tA\\101'",
    "-p 'dev C 9 600 0 0 5 1' -p 'again L dev'|-p 's S 9 777 0 0 a b'",
    "-pf pseudo -pd 'D 4 755 0 0'|-pf none-such",
    "-no-xattrs|-xattrs",
    "-xattrs-exclude ^user|-xattrs-include note|-xattrs-exclude [",
    "-xattrs-add user.q=0t\\101b|-xattrs-add trusted.q=0x4142|-xattrs-add user.q",
    "-nopad",
    "-offset 4096",
    "-processors 1",
    "-mem 64M|-mem-percent 10",
    "-exit-on-error",
    "-quiet|-info|-no-progress|-percentage",
    "-throttle 1|-limit 99|-overcommit 25",
    "-reproducible|-not-reproducible",
];

/// Options of mksquashfs alone; the last one takes all words behind it.
const OF_DIRECTORIES: &[&str] = &[
    "-one-file-system|-one-file-system-x",
    "-max-depth 1|-max-depth 2|-max-depth 0",
    "-no-exports|-tailends|-always-use-fragments",
    "-sort sort",
    "-single-reader|-small-readers 2 -block-readers 2",
    "-action 'chmod(0700)@name(*.conf)'|-action 'exclude@type(l)'|-action 'uid(5)@filesize(+1)'|-action 'none'",
    "-no-recovery|-recovery-path .",
    "-root-becomes old",
];

const EXCLUDES: &[&str] = &[
    "-e usr/share etc",
    "-wildcards -e 'etc/*' '... x'",
    "-regex -e '^usr$/^s' 'o'",
    "-ef excludes -wildcards",
    "-wildcards -e 'usr/!(bin)' '... +(o|s)*'",
    "-wildcards -e /etc",
];

const SOURCES: &[&str] = &[
    "rootfs OUT",
    "rootfs OUT",
    "rootfs/usr rootfs/etc OUT",
    "rootfs/usr OUT -keep-as-directory",
    "rootfs/usr rootfs/boot/vmlinuz OUT -no-strip",
    "rootfs/boot/vmlinuz rootfs/etc/cmdline.d/a.conf OUT",
    "<names - OUT -cpiostyle",
    "<a.tar - OUT -tar",
    "- OUT",
];

/// Options that set the time of what has none of its own.
const TIMES: &[&str] = &["-repro", "-root-time 9 -p 'etc M 8 711 3 4'", "-root-time inode", "-inode-time 7"];

const UNPACKING: &[&str] = &[
    "-force|-f",
    "-no-progress|-quiet|-info",
    "-max-depth 1|-max 2|-max-depth x",
    "-exclude-list usr/share 'etc/*' ;|-ex '... x' ;",
    "-extract-file paths|-e none-such",
    "-exclude-file paths",
    "-excludes",
    "-match",
    "-missing",
    "-follow-symlinks -no-wildcards|-L -no-wild",
    "-no-wildcards|-regex",
    "-all-time 5|-all-time '2020-01-01 UTC'|-all-time nonsense",
    "-no-xattrs|-user-xattrs|-xattrs",
    "-xattrs-exclude ^user|-xattrs-include note",
    "-processors 1|-mem 64M|-mem-percent 5",
    "-ignore-errors|-strict-errors|-no-exit-code",
    "-offset 0|-offset 1K",
];

const LISTING: &[&str] = &[
    "-ls",
    "-lls",
    "-lln",
    "-lc",
    "-llc",
    "-lls -full",
    "-lln -UTC -full-precision",
    "-s",
    "-stat",
    "-mkfs-time",
];

const NAMES: &[&str] = &[
    "",
    "",
    "usr",
    "etc/* bin",
    "bin/tool",
    "usr/bin/t??l none-such",
    "nosuch",
    ".",
    "/",
    "usr/../etc",
    "usr/bin/",
    "'usr/!(bin)'",
    "'^u'",
    "usr/release boot",
];

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ mixed >> 31) % count as u64).unwrap()
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    /// Takes some rows of tables, one alternative of each.
    fn some(&mut self, tables: &[&[&'static str]], most: usize) -> String {
        let mut rows: Vec<&str> = tables.concat();
        let mut taken = Vec::new();
        for _ in 0..self.below(most) + 1 {
            let row: Vec<&str> = rows.swap_remove(self.below(rows.len())).split('|').collect();
            taken.push(self.one(&row));
        }
        taken.join(" ")
    }
}

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Holds packfs to what the tool does with lines that `make` makes.
fn hold(tool: &'static str, make: impl Fn(&mut Dice) -> (Shows, String)) {
    if peer_since(tool, "4.7.5").is_none() {
        return;
    }
    let bench = Bench::new();
    std::fs::write(
        bench.path("names"),
        "rootfs/usr\nrootfs/usr/bin/tool\nrootfs/usr/bin/hard\nrootfs/pipe\n",
    )
    .unwrap();
    std::fs::write(bench.path("paths"), "# some\nusr/bin/t*\netc\n").unwrap();
    let mut dice = Dice(from_environment("PACKFS_SEED", 37));
    let calls: Vec<Call> = (0..from_environment("PACKFS_LINES", 25))
        .map(|_| {
            let (shows, line) = make(&mut dice);
            let line: &'static str = Box::leak(line.into_boxed_str());
            let lines: &'static [&'static str] = Box::leak(Box::new([line]));
            Call { number: 0, caller: "", tool, lines, shows, but: &[], differs: "", since: "4.7.5" }
        })
        .collect();
    bench.hold_all(&calls);
}

#[test]
fn lines_of_any_options_of_mksquashfs_are_those_of_the_tool() {
    hold("mksquashfs", |dice| {
        let source = dice.one(SOURCES);
        let options = dice.some(&[PACKING, OF_DIRECTORIES], 5);
        let excludes = if dice.below(3) == 0 { dice.one(EXCLUDES) } else { "" };
        let time = if source.starts_with("rootfs OUT") { "" } else { dice.one(TIMES) };
        (Shows::Image, format!("{source} {time} {options} {excludes}"))
    });
}

#[test]
fn lines_of_any_options_of_sqfstar_are_those_of_the_tool() {
    hold("sqfstar", |dice| {
        let (time, options) = (dice.one(TIMES), dice.some(&[PACKING], 5));
        let excludes = ["", "'etc/*' usr/share", "'... x'", "usr"];
        (Shows::Image, format!("<a.tar {time} {options} OUT {}", dice.one(&excludes)))
    });
}

#[test]
fn lines_of_any_options_of_unsquashfs_are_those_of_the_tool() {
    hold("unsquashfs", |dice| {
        let (options, names) = (dice.some(&[UNPACKING], 4), dice.one(NAMES));
        match dice.below(3) {
            0 => (Shows::Text, format!("-d at {} {options} a.sqfs {names}", dice.one(LISTING))),
            _ => (Shows::Files, format!("-n -d OUT {options} a.sqfs {names}")),
        }
    });
}
