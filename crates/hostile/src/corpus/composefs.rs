//! Images of composefs. Their small files lie in them; there are no objects.

use super::Base;
use packfs::Result;
use packfs::composefs::{Versions, make_of_dump};

/// Returns an image of each version.
pub(super) fn images() -> Result<Vec<Base>> {
    let mut dump = "\
/ 0 40755 2 0 0 0 100.5 - - - security.selinux=root\\x00
/block 0 60644 1 0 0 300 100.0 - - -
/fifo 0 10644 1 0 0 0 100.0 - - - user.a=1 user.b=2
/gone 0 20000 1 0 0 0 200.0 - - - user.a=1
/link 0 120777 1 0 0 0 100.5 ../up - -
/many 0 40755 2 1000 100000 0 100.0 - - - trusted.overlay.opaque=y
/socket 0 140755 1 0 0 0 100.5 - - - system.posix_acl_access=\\x02\\x00\\x00\\x00
"
    .to_owned();
    dump += &format!("/longer 0 120777 1 0 0 0 100.5 {} - -\n", "t".repeat(4090));
    for len in [1, 60, 2000, 3000, 4096, 5000] {
        dump += &format!("/many/{len} {len} 100644 2 0 0 0 99.5 - {} -\n", "c".repeat(len));
        dump += &format!("/many/again-{len} 0 @100644 2 0 0 0 0.0 /many/{len} - -\n");
    }
    for number in 0..200 {
        dump += &format!("/many/{}-{number} 0 100644 1 {number} 0 0 100.5 - - -\n", "n".repeat(number % 50));
    }
    let made = |version: u32| {
        let versions = Versions { min: version, max: version };
        let bytes = make_of_dump(&mut dump.as_bytes(), versions)?.bytes;
        Ok(Base { name: format!("version {version}"), bytes })
    };
    [0, 1].into_iter().map(made).collect()
}
