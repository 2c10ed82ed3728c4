//! Serves an image through FUSE until it is unmounted.
//!
//! `cargo run --example mount -- root.sqfs /mnt`, then `umount /mnt` or `fusermount3 -u /mnt`

use packfs::mount::{FuseMount, FuseOptions};
use std::io::{Write, stdout};
use std::path::Path;
use std::sync::Arc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [image, at] = &words[..] else { return Err("usage: mount IMAGE DIR".into()) };
    let opened = packfs::open(image)?;
    let options = FuseOptions::new(opened.volume().root(), image);
    let mount = FuseMount::new(Arc::clone(opened.engine()), Path::new(at), &options)?;
    writeln!(stdout(), "mounted")?;
    mount.wait()?;
    Ok(())
}
