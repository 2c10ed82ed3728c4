//! The document's figures. Of tables that it has several of, the first.

/// Kinds of trees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tree {
    /// ffmpeg: 1.4k files, 2.7 GiB.
    Build,
    /// boost: 149k files, 2 GiB.
    Small,
    /// A clone, images, music and PDFs, which hardly compress: 1.2k files, 690 MB.
    Media,
}

impl Tree {
    pub(super) const ALL: [Self; 3] = [Self::Build, Self::Small, Self::Media];

    /// Its number among the trees of the document.
    pub(super) fn number(self) -> usize {
        self as usize
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Build => "larger files",
            Self::Small => "many small files",
            Self::Media => "what does not compress",
        }
    }
}

/// One row of compsize.
pub(super) struct Ratio {
    pub(super) tree: Tree,
    pub(super) codec: &'static str,
    pub(super) kind: &'static str,
    pub(super) percent: f64,
    pub(super) disk: f64,
    pub(super) uncompressed: f64,
}

const K: f64 = 1024.0;
const M: f64 = 1024.0 * K;
const G: f64 = 1024.0 * M;

const fn ratio(
    tree: Tree,
    codec: &'static str,
    kind: &'static str,
    percent: f64,
    disk: f64,
    uncompressed: f64,
) -> Ratio {
    Ratio { tree, codec, kind, percent, disk, uncompressed }
}

pub(super) static RATIOS: [Ratio; 33] = [
    ratio(Tree::Build, "lzo", "TOTAL", 47.0, 1.2 * G, 2.6 * G),
    ratio(Tree::Build, "lzo", "none", 100.0, 306.0 * M, 306.0 * M),
    ratio(Tree::Build, "lzo", "lzo", 41.0, 970.0 * M, 2.3 * G),
    ratio(Tree::Build, "zlib", "TOTAL", 36.0, 964.0 * M, 2.6 * G),
    ratio(Tree::Build, "zlib", "none", 100.0, 294.0 * M, 294.0 * M),
    ratio(Tree::Build, "zlib", "zlib", 28.0, 670.0 * M, 2.3 * G),
    ratio(Tree::Build, "zstd:1", "TOTAL", 34.0, 917.0 * M, 2.6 * G),
    ratio(Tree::Build, "zstd:1", "none", 100.0, 294.0 * M, 294.0 * M),
    ratio(Tree::Build, "zstd:1", "zstd", 26.0, 622.0 * M, 2.3 * G),
    ratio(Tree::Build, "zstd:3", "TOTAL", 34.0, 917.0 * M, 2.6 * G),
    ratio(Tree::Build, "zstd:3", "none", 100.0, 294.0 * M, 294.0 * M),
    ratio(Tree::Build, "zstd:3", "zstd", 26.0, 622.0 * M, 2.3 * G),
    ratio(Tree::Small, "lzo", "TOTAL", 37.0, 647.0 * M, 1.6 * G),
    ratio(Tree::Small, "lzo", "none", 100.0, 4.3 * M, 4.3 * M),
    ratio(Tree::Small, "lzo", "lzo", 37.0, 643.0 * M, 1.6 * G),
    ratio(Tree::Small, "zlib", "TOTAL", 24.0, 417.0 * M, 1.6 * G),
    ratio(Tree::Small, "zlib", "none", 100.0, 228.0 * K, 228.0 * K),
    ratio(Tree::Small, "zlib", "zlib", 24.0, 416.0 * M, 1.6 * G),
    ratio(Tree::Small, "zstd:1", "TOTAL", 22.0, 392.0 * M, 1.6 * G),
    ratio(Tree::Small, "zstd:1", "none", 100.0, 228.0 * K, 228.0 * K),
    ratio(Tree::Small, "zstd:1", "zstd", 22.0, 392.0 * M, 1.6 * G),
    ratio(Tree::Small, "zstd:3", "TOTAL", 22.0, 392.0 * M, 1.6 * G),
    ratio(Tree::Small, "zstd:3", "none", 100.0, 228.0 * K, 228.0 * K),
    ratio(Tree::Small, "zstd:3", "zstd", 22.0, 392.0 * M, 1.6 * G),
    ratio(Tree::Media, "lzo", "TOTAL", 96.0, 663.0 * M, 690.0 * M),
    ratio(Tree::Media, "lzo", "none", 100.0, 646.0 * M, 646.0 * M),
    ratio(Tree::Media, "lzo", "lzo", 38.0, 16.0 * M, 43.0 * M),
    ratio(Tree::Media, "zstd:1", "TOTAL", 95.0, 657.0 * M, 690.0 * M),
    ratio(Tree::Media, "zstd:1", "none", 100.0, 646.0 * M, 646.0 * M),
    ratio(Tree::Media, "zstd:1", "zstd", 26.0, 11.0 * M, 43.0 * M),
    ratio(Tree::Media, "zstd:3", "TOTAL", 95.0, 657.0 * M, 690.0 * M),
    ratio(Tree::Media, "zstd:3", "none", 100.0, 646.0 * M, 646.0 * M),
    ratio(Tree::Media, "zstd:3", "zstd", 26.0, 11.0 * M, 43.0 * M),
];

/// One row of a table of speeds: seconds of writing, and MiB/s of writing, reading by tar and by cp.
pub(super) struct Speed {
    pub(super) tree: Tree,
    pub(super) device: &'static str,
    pub(super) fs: &'static str,
    pub(super) seconds: f64,
    pub(super) write: f64,
    pub(super) tar: f64,
    pub(super) cp: f64,
}

const fn speed(tree: Tree, device: &'static str, fs: &'static str, of: [f64; 4]) -> Speed {
    let [seconds, write, tar, cp] = of;
    Speed { tree, device, fs, seconds, write, tar, cp }
}

const USB: &str = "usb3-ssd";
const NVME: &str = "nvme";
const HDD: &str = "hdd";

pub(super) static SPEEDS: [Speed; 70] = [
    speed(Tree::Build, USB, "btrfs.lzo", [6.34291, 421.109, 267.076, 643.236]),
    speed(Tree::Build, USB, "btrfs.none", [9.40651, 283.958, 365.276, 344.891]),
    speed(Tree::Build, USB, "btrfs.zstd-1", [6.71203, 397.95, 253.149, 838.609]),
    speed(Tree::Build, USB, "btrfs.zstd-3", [5.83131, 458.054, 250.175, 853.062]),
    speed(Tree::Build, USB, "ext4.0", [9.2048, 290.181, 339.391, 360.402]),
    speed(Tree::Build, USB, "ext4.1", [8.96366, 297.987, 338.369, 358.914]),
    speed(Tree::Build, USB, "xfs.0", [9.38198, 284.701, 341.466, 363.048]),
    speed(Tree::Build, USB, "xfs.1", [9.1085, 293.249, 338.185, 363.603]),
    speed(Tree::Small, USB, "btrfs.lzo", [11.269, 144.622, 88.2133, 77.5018]),
    speed(Tree::Small, USB, "btrfs.none", [10.1429, 160.68, 64.454, 59.4803]),
    speed(Tree::Small, USB, "btrfs.zstd-1", [9.30068, 175.23, 92.5516, 79.568]),
    speed(Tree::Small, USB, "btrfs.zstd-3", [10.3497, 157.469, 85.4793, 80.4497]),
    speed(Tree::Small, USB, "ext4.0", [12.6361, 128.977, 49.383, 49.2813]),
    speed(Tree::Small, USB, "ext4.1", [12.5113, 130.263, 48.693, 48.3962]),
    speed(Tree::Small, USB, "xfs.0", [13.7472, 118.552, 47.178, 47.7707]),
    speed(Tree::Small, USB, "xfs.1", [13.5625, 120.166, 47.6865, 47.3504]),
    speed(Tree::Build, NVME, "btrfs.lzo", [1.91317, 1396.14, 589.98, 1280.35]),
    speed(Tree::Build, NVME, "btrfs.none", [3.29185, 811.416, 1216.99, 1153.71]),
    speed(Tree::Build, NVME, "btrfs.zstd-1", [3.14575, 849.1, 489.592, 1305.49]),
    speed(Tree::Build, NVME, "ext4.0", [4.48444, 595.628, 1093.44, 1213.11]),
    speed(Tree::Build, NVME, "ext4.1", [4.4532, 599.806, 1100.46, 1186.14]),
    speed(Tree::Build, NVME, "xfs.0", [3.88385, 687.734, 1190.83, 1292.62]),
    speed(Tree::Build, NVME, "xfs.1", [5.31797, 502.27, 1182.8, 1271.12]),
    speed(Tree::Small, NVME, "btrfs.lzo", [8.13217, 200.408, 163.573, 124.486]),
    speed(Tree::Small, NVME, "btrfs.none", [7.60417, 214.324, 146.083, 120.017]),
    speed(Tree::Small, NVME, "btrfs.zstd-1", [13.0737, 124.659, 153.742, 121.545]),
    speed(Tree::Small, NVME, "ext4.0", [8.51435, 191.413, 96.7245, 107.22]),
    speed(Tree::Small, NVME, "ext4.1", [8.64948, 188.422, 96.3132, 107.352]),
    speed(Tree::Small, NVME, "xfs.0", [8.57081, 190.152, 110.243, 102.137]),
    speed(Tree::Small, NVME, "xfs.1", [8.57814, 189.989, 110.808, 100.598]),
    speed(Tree::Build, HDD, "btrfs.lzo", [15.1674, 176.105, 193.557, 195.507]),
    speed(Tree::Build, HDD, "btrfs.none", [22.912, 116.579, 116.823, 118.195]),
    speed(Tree::Build, HDD, "btrfs.zstd-1", [11.5432, 231.397, 183.332, 251.207]),
    speed(Tree::Build, HDD, "btrfs.zstd-3", [11.2101, 238.273, 170.086, 297.061]),
    speed(Tree::Build, HDD, "ext4.0", [29.8597, 89.4537, 72.7791, 79.1887]),
    speed(Tree::Build, HDD, "ext4.1", [32.4621, 82.2824, 76.1464, 83.3907]),
    speed(Tree::Build, HDD, "xfs.0", [25.2035, 105.98, 97.814, 99.3223]),
    speed(Tree::Build, HDD, "xfs.1", [25.8475, 103.339, 98.3266, 99.6622]),
    speed(Tree::Small, HDD, "btrfs.lzo", [26.8329, 60.7373, 19.6596, 23.9906]),
    speed(Tree::Small, HDD, "btrfs.none", [1394.19, 1.16896, 12.4196, 20.2212]),
    speed(Tree::Small, HDD, "btrfs.zstd-1", [13.399, 121.632, 34.2228, 30.4638]),
    speed(Tree::Small, HDD, "btrfs.zstd-3", [14.9673, 108.888, 32.3755, 22.2033]),
    speed(Tree::Small, HDD, "ext4.0", [36.2998, 44.8971, 7.45604, 11.5033]),
    speed(Tree::Small, HDD, "ext4.1", [69.3157, 23.5121, 7.20049, 11.8862]),
    speed(Tree::Small, HDD, "xfs.0", [171.254, 9.51661, 8.53608, 7.72498]),
    speed(Tree::Small, HDD, "xfs.1", [189.117, 8.6177, 8.44728, 7.53305]),
    speed(Tree::Media, USB, "btrfs.lzo", [2.53214, 245.244, 375.027, 352.94]),
    speed(Tree::Media, USB, "btrfs.none", [2.68499, 231.283, 374.854, 358.245]),
    speed(Tree::Media, USB, "btrfs.zstd-1", [2.51963, 246.462, 372.118, 354.796]),
    speed(Tree::Media, USB, "btrfs.zstd-3", [2.63473, 235.694, 382.901, 371.125]),
    speed(Tree::Media, USB, "ext4.0", [2.63095, 236.034, 338.105, 360.944]),
    speed(Tree::Media, USB, "ext4.1", [2.70295, 229.746, 336.028, 356.526]),
    speed(Tree::Media, USB, "xfs.0", [2.63784, 235.417, 336.127, 363.216]),
    speed(Tree::Media, USB, "xfs.1", [2.72032, 228.279, 333.153, 358.743]),
    speed(Tree::Media, NVME, "btrfs.lzo", [0.944111, 657.753, 1112.02, 1102.44]),
    speed(Tree::Media, NVME, "btrfs.none", [0.980839, 633.123, 1142.03, 1012.4]),
    speed(Tree::Media, NVME, "btrfs.zstd-1", [0.910304, 682.181, 1141.54, 1126.06]),
    speed(Tree::Media, NVME, "btrfs.zstd-3", [0.931245, 666.84, 1132.01, 1101.61]),
    speed(Tree::Media, NVME, "ext4.0", [1.08241, 573.713, 1109.63, 1242.15]),
    speed(Tree::Media, NVME, "ext4.1", [1.1026, 563.207, 1079.53, 1244.28]),
    speed(Tree::Media, NVME, "xfs.0", [0.938866, 661.428, 1207.72, 1368.09]),
    speed(Tree::Media, NVME, "xfs.1", [0.974274, 637.389, 1225.12, 1269.08]),
    speed(Tree::Media, HDD, "btrfs.lzo", [7.87219, 78.8843, 114.604, 97.4419]),
    speed(Tree::Media, HDD, "btrfs.none", [5.36696, 115.706, 102.403, 100.148]),
    speed(Tree::Media, HDD, "btrfs.zstd-1", [7.37862, 84.161, 114.727, 98.6443]),
    speed(Tree::Media, HDD, "btrfs.zstd-3", [7.56092, 82.1319, 113.929, 102.339]),
    speed(Tree::Media, HDD, "ext4.0", [8.45322, 73.4622, 78.8442, 84.4509]),
    speed(Tree::Media, HDD, "ext4.1", [7.54319, 82.3249, 80.7473, 98.2429]),
    speed(Tree::Media, HDD, "xfs.0", [6.92109, 89.7247, 88.1998, 91.6923]),
    speed(Tree::Media, HDD, "xfs.1", [7.4823, 82.9948, 91.0122, 94.2931]),
];

/// Best, second, third and worst.
pub(super) static CHOICES: [(Tree, &str, [&str; 4]); 6] = [
    (Tree::Build, USB, ["btrfs zstd:3", "btrfs zstd:1", "btrfs lzo", "btrfs"]),
    (Tree::Build, NVME, ["btrfs lzo", "btrfs zstd:1", "btrfs", "xfs"]),
    (Tree::Build, HDD, ["btrfs zstd:3", "btrfs zstd:1", "btrfs lzo", "ext4"]),
    (Tree::Small, USB, ["btrfs zstd/lzo", "btrfs zstd/lzo", "btrfs zstd/lzo", "xfs"]),
    (Tree::Small, NVME, ["btrfs lzo", "btrfs", "ext4", "btrfs zstd:1"]),
    (Tree::Small, HDD, ["btrfs zstd:1", "btrfs zstd:3", "btrfs lzo", "btrfs"]),
];
