//! The map of an image: its figures add up to the image's length, whatever the format, and a
//! browser draws them.

use std::path::Path;

use packfs_page::treemap;
use packfs_testkit::Random;
use serde_json::Value;

use super::browser::{has_chromium, page, show};

/// Files of many sizes, some equal, some that do not shrink, one of a hole, names that mean
/// something to HTML.
fn write_tree(root: &Path) {
    let mut random = Random::new(3);
    for folder in ["bin", "lib/modules", "share/doc", "<script><b>&\"'"] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
    }
    for index in 0..300 {
        let words = format!("word {index} ").repeat(index * 7 + 1);
        std::fs::write(root.join("share/doc").join(format!("note {index}.txt")), words).unwrap();
    }
    for index in 0..8 {
        std::fs::write(root.join("bin").join(format!("tool{index}")), random.noise(30_000 * (index + 1)))
            .unwrap();
    }
    let module = random.noise(200_000);
    for name in ["lib/modules/a.ko", "lib/modules/twin of a.ko", "<script><b>&\"'/<i>'\"&.ko"] {
        std::fs::write(root.join(name), &module).unwrap();
    }
    std::fs::hard_link(root.join("bin/tool7"), root.join("bin/again")).unwrap();
    std::fs::File::create(root.join("hole")).unwrap().set_len(1 << 20).unwrap();
    std::os::unix::fs::symlink("bin/tool1", root.join("link")).unwrap();
}

/// The nodes that a page holds, as lists.
fn nodes(html: &str) -> (u64, Vec<Value>) {
    let json = html.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: Value = serde_json::from_str(json).unwrap();
    (data["length"].as_u64().unwrap(), data["nodes"].as_array().unwrap().clone())
}

#[test]
fn figures_add_up_to_the_image_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("tree");
    write_tree(&tree);
    let images = [
        ("squashfs", "zstd"),
        ("squashfs", "gzip"),
        ("erofs", "lz4hc"),
        ("erofs", "none"),
        ("cramfs", ""),
        ("iso9660", ""),
    ];
    for (format, codec) in images {
        let path = folder.path().join(format!("{format}-{codec}.image"));
        let mut pack = packfs::pack(&tree, &path).format(format).verify(false).lossy(true);
        if !codec.is_empty() {
            pack = pack.codec(codec);
        }
        pack.run().unwrap();
        let opened = packfs::open(&path).unwrap();
        let (length, nodes) = nodes(&treemap::html(&opened, format, &[]).unwrap());
        assert_eq!(length, std::fs::metadata(&path).unwrap().len(), "{format} {codec}");
        let stored = |node: &Value| node[4].as_u64().unwrap();
        assert_eq!(stored(&nodes[0]), length, "{format} {codec}");
        let mut sums = vec![0; nodes.len()];
        for node in &nodes[1..] {
            sums[node[0].as_u64().unwrap() as usize] += stored(node);
        }
        for (node, sum) in nodes.iter().zip(sums).filter(|(node, _)| node[2] == 0) {
            assert_eq!(stored(node), sum, "{format} {codec}: {}", node[1]);
        }
        // Most of it is noise, which no codec makes smaller, and what is no file's is less, padding
        // to whole sectors included.
        let owners: u64 = nodes.iter().filter(|node| node[2] == 3).map(stored).sum();
        assert!(owners * 2 < length, "{format} {codec}: {owners} of {length} bytes are no file's");
        let equal: Vec<u64> =
            nodes.iter().filter(|node| node[2] == 1 && node[3] == 200_000).map(stored).collect();
        assert_eq!(equal.len(), 3, "{format} {codec}");
    }
}

#[test]
fn a_browser_draws_it_and_goes_to_the_folder_that_the_address_names() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, image) = (folder.path().join("tree"), folder.path().join("image"));
    write_tree(&tree);
    packfs::pack(&tree, &image).format("squashfs").codec("zstd").run().unwrap();
    let facts = [("format".to_owned(), "</dd><b>".to_owned())];
    let html = treemap::html(&packfs::open(&image).unwrap(), "</title><b>&", &facts).unwrap();
    assert_eq!(html.matches("</script>").count(), 2);
    assert!(!html.contains("<b>") && !html.contains("<i>"));
    let words = "&lt;/title&gt;&lt;b&gt;&amp;";
    assert!(html.contains(&format!("<title>{words} - where its bytes go</title>")));
    assert!(html.contains(&format!("<h1>{words}</h1>")));
    if !has_chromium() {
        return;
    }
    let page = page("treemap.html", &html);
    let shown = show(&page, "");
    shown.is_without_fault();
    let (_, nodes) = nodes(&html);
    let inside = |parent: usize| nodes.iter().skip(1).filter(|node| node[0] == parent).count();
    assert_eq!(shown.count("data-entry="), inside(0));
    // All that is large enough is drawn at once, to the third folder down.
    assert!(shown.count("data-tile=") > 20, "{}", shown.count("data-tile="));
    assert!(shown.count("data-depth=\"3\"") > 0);
    assert!(!shown.dom.contains("<b>") && !shown.dom.contains("<i>"));
    let shown = show(&page, "#path=/share/doc");
    shown.is_without_fault();
    let doc = nodes.iter().position(|node| node[1] == "doc").unwrap();
    assert_eq!(shown.count("data-entry="), inside(doc).min(100));
    assert!(shown.dom.contains("<span aria-current=\"location\">doc</span>"));
}
