//! Descriptions of devices that users write: what is wrong with them is said.

use packfs_device::{DeviceSpec, Order};

const GOOD: &str = r#"
name = "mine"
title = "a device of mine"

[medium]
capacity_mib = 1024
block_bytes = 512

[queue]
depth = 4
channels = 2
read_ahead_kib = 128
max_request_kib = 512

[bus]
mb_per_s = 100

[read]
latency_us = 100
mb_per_s = 50
"#;

const SEEK: &str = "\n[seek]\ntrack_to_track_ms = 1\naverage_ms = 8\nfull_stroke_ms = 16\nrpm = 5400\n";

fn refusal(text: &str) -> String {
    let error = DeviceSpec::parse(text, "mine.toml").unwrap_err();
    assert_eq!(error.kind().exit_code(), 2, "{error}");
    error.to_string()
}

#[test]
fn what_is_left_out_has_a_meaning() {
    let spec = DeviceSpec::parse(GOOD, "mine.toml").unwrap();
    assert!(!spec.is_writable() && spec.seek.is_none() && spec.queue.order == Order::Fifo);
    assert_eq!(spec.read.sequential_latency(), 100_000);
    assert_eq!((spec.read.rate, spec.read.rate_at_end()), (50_000_000, 50_000_000));
    assert_eq!(spec.medium.capacity, 1 << 30);
    let nearest = GOOD.replace("channels = 2", "channels = 1\norder = \"nearest\"") + SEEK;
    assert_eq!(DeviceSpec::parse(&nearest, "mine.toml").unwrap().queue.order, Order::Nearest);
}

#[test]
fn every_figure_is_checked() {
    let cases = [
        ("name = \"mine\"", "name = \"my disk\"", "letters, digits"),
        ("capacity_mib = 1024", "capacity_mib = 0", "[medium] capacity_mib = 0: 1 to"),
        ("capacity_mib = 1024", "capacity_mib = nan", "[medium] capacity_mib = nan"),
        ("capacity_mib = 1024", "capacity_mib = inf", "[medium] capacity_mib = inf"),
        ("block_bytes = 512", "block_bytes = 513", "512, 1024, 2048 or 4096"),
        ("depth = 4", "depth = 0", "[queue] depth = 0: 1 to 1024 is allowed"),
        ("channels = 2", "channels = 5", "no more than depth = 4"),
        ("max_request_kib = 512", "max_request_kib = 2048", "[queue] max_request_kib = 2048: 4 to 1024"),
        ("channels = 2", "channels = 1\norder = \"nearest\"", "only a device with [seek]"),
        ("channels = 2", "channels = 2\norder = \"random\"", "line 12"),
        ("mb_per_s = 100", "mb_per_s = 0", "[bus] mb_per_s = 0: 0.001 to"),
        ("latency_us = 100", "latency_us = -1", "[read] latency_us = -1: 0 to"),
        ("latency_us = 100", "latency_us = 1e300", "[read] latency_us"),
        ("latency_us = 100", "latency_us = 100\nbuffer_kib = 64", "only a device with [seek] reads ahead"),
        ("latency_us = 100", "latency_ms = 100", "unknown field `latency_ms`"),
        ("[read]", "[reading]", "unknown field `reading`"),
        ("latency_us = 100", "latency_us = \"fast\"", "line 19"),
        ("title = \"a device of mine\"", "title = ", "line 3"),
        ("title = \"a device of mine\"\n", "", "missing field `title`"),
    ];
    for (old, new, expected) in cases {
        let text = GOOD.replace(old, new);
        assert_ne!(text, GOOD, "{old}");
        let said = refusal(&text);
        assert!(said.contains(expected) && said.starts_with("device mine.toml"), "{new}: {said}");
    }
    let steep =
        GOOD.replace("channels = 2", "channels = 1") + &SEEK.replace("average_ms = 8", "average_ms = 15.9");
    assert!(refusal(&steep).contains("no curve that rises"), "{}", refusal(&steep));
    for (figure, found) in [
        ("average_ms = 8", "average_ms = -1"),
        ("track_to_track_ms = 1", "track_to_track_ms = 1e9"),
        ("full_stroke_ms = 16", "full_stroke_ms = nan"),
    ] {
        let said = refusal(&(GOOD.to_owned() + &SEEK.replace(figure, found)));
        assert!(said.ends_with(&format!("[seek] {found}: 0 to 86400000 is allowed")), "{said}");
    }
    let slow = GOOD.to_owned() + "\n[limits]\niops = 0\n";
    assert!(refusal(&slow).contains("[limits] iops = 0: 1 to"));
}
