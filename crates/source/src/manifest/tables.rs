//! Rows of device tables (makedevs, genext2fs): ten columns, of which one row may stand for several
//! nodes.

use super::fault::Fault;
use packfs_core::escaped;

/// Most nodes of one row.
const COUNT_MAX: u64 = 1 << 16;

/// Returns the entries of a row with all ten columns; `None` for any other line.
pub(super) fn entries(line: &[u8]) -> Result<Option<Vec<Vec<u8>>>, Fault> {
    let words: Vec<&[u8]> = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
    let &[path, kind, mode, uid, gid, major, minor, start, step, count] = &words[..] else { return Ok(None) };
    let has_quotes = line.iter().any(|byte| matches!(byte, b'"' | b'=' | b'\\'));
    if has_quotes || path.starts_with(b"#") || !matches!(kind, b"d" | b"c" | b"b" | b"p" | b"f") {
        return Ok(None);
    }
    let row = |kind: &[u8], path: &[u8], more: &str| {
        [&[kind, path, mode, uid, gid].join(&b' '), more.as_bytes()].concat()
    };
    match kind {
        // The file has to exist.
        b"f" => return Ok(Some(vec![row(b"m", path, "")])),
        b"d" | b"p" => return Ok(Some(vec![row(kind, path, "")])),
        _ => {}
    }
    let [major, minor, start, step] = [major, minor, start, step].map(number);
    let (major, minor, start, step) = (major?, minor?, start?, step?);
    // A single node has no number after its name.
    match number(count)? {
        0 | 1 => Ok(Some(vec![row(kind, path, &format!(" {major} {minor}"))])),
        count if count > COUNT_MAX => {
            Err(Fault::new(format!("count \"{count}\": 0 to {COUNT_MAX} nodes are allowed")))
        }
        count => {
            let node = |index: u64| {
                let name = [path, start.saturating_add(index).to_string().as_bytes()].concat();
                row(kind, &name, &format!(" {major} {}", minor.saturating_add(index.saturating_mul(step))))
            };
            Ok(Some((0..count).map(node).collect()))
        }
    }
}

fn number(word: &[u8]) -> Result<u64, Fault> {
    if word == b"-" {
        return Ok(0);
    }
    let parsed = std::str::from_utf8(word).ok().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| {
        Fault::new(format!("\"{}\": a number or - is allowed in a device table", escaped(word)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(line: &str) -> Option<Vec<String>> {
        let found = entries(line.as_bytes()).unwrap()?;
        Some(found.into_iter().map(|row| String::from_utf8(row).unwrap()).collect())
    }

    #[test]
    fn a_row_stands_for_several_nodes() {
        let found = rows("/dev/hda\tb\t640\t0\t6\t3\t1\t1\t1\t3").unwrap();
        assert_eq!(found, ["b /dev/hda1 640 0 6 3 1", "b /dev/hda2 640 0 6 3 2", "b /dev/hda3 640 0 6 3 3"]);
        assert_eq!(rows("/dev/uio b 640 0 0 252 1 6 2 2").unwrap()[1], "b /dev/uio7 640 0 0 252 3");
        assert_eq!(rows("/dev/null c 666 0 0 1 3 0 0 -").unwrap(), ["c /dev/null 666 0 0 1 3"]);
        assert_eq!(rows("/etc/shadow f 600 0 0 - - - - -").unwrap(), ["m /etc/shadow 600 0 0"]);
        assert_eq!(rows("/tmp d 1777 0 0 - - - - -").unwrap(), ["d /tmp 1777 0 0"]);
    }

    #[test]
    fn other_lines_stay() {
        for line in ["c /dev/null 666 0 0 1 3", "file /a mode=0644", "# /tmp d 1777 0 0 - - - - -", ""] {
            assert_eq!(rows(line), None, "{line}");
        }
    }

    #[test]
    fn numbers_have_limits() {
        assert!(entries(b"/dev/a c 666 0 0 1 3 0 1 99999999").is_err());
        assert!(entries(b"/dev/a c 666 0 0 x 3 0 1 5").is_err());
    }
}
