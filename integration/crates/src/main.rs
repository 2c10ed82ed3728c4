//! Packs a folder as SquashFS and as EROFS, reads a file of each image, and prints their sizes.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in ["squashfs", "erofs"] {
        let path = folder.join("target").join(name);
        let report = packfs::pack(folder.join("src"), &path).format(name).run()?;
        let image = packfs::open(&path)?;
        assert_eq!(image.format().name(), name);
        assert_eq!(image.read("main.rs")?, std::fs::read(folder.join("src/main.rs"))?);
        println!("{name}: {} bytes became {}", report.bytes_in, report.image_len);
        std::fs::remove_file(path)?;
    }
    assert!(packfs::formats::all().iter().all(|format| format.name() != "xfs"), "features select the formats");
    Ok(())
}
