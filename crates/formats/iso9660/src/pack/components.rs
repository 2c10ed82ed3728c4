//! Component records in entries of Rock Ridge (SL) and AAIP (AL): text split by the maximum length
//! of entries.

use crate::disk::*;

/// Maximum bytes of component records in one entry, after its header and flags.
const AREA_LEN_MAX: usize = u8::MAX as usize - 5;

/// A component: flags except `CONTINUES`, and text.
pub(super) type Component<'a> = (u8, &'a [u8]);

pub(super) fn entries<'a>(
    signature: [u8; 2],
    components: impl IntoIterator<Item = Component<'a>>,
) -> Vec<Vec<u8>> {
    let mut areas: Vec<Vec<u8>> = vec![Vec::new()];
    for (flags, mut text) in components {
        loop {
            let full = |area: &Vec<u8>| area.len() + 2 + usize::from(!text.is_empty()) > AREA_LEN_MAX;
            if areas.last().is_none_or(full) {
                areas.push(Vec::new());
            }
            let Some(area) = areas.last_mut() else { break };
            let (part, rest) = text.split_at(text.len().min(AREA_LEN_MAX - area.len() - 2));
            let goes_on = if rest.is_empty() { 0 } else { CONTINUES };
            area.extend_from_slice(&[flags | goes_on, part.len() as u8]);
            area.extend_from_slice(part);
            text = rest;
            if text.is_empty() {
                break;
            }
        }
    }
    let last = areas.len() - 1;
    let entry = |(index, area): (usize, Vec<u8>)| {
        let flags = if index < last { CONTINUES } else { 0 };
        let [first, second] = signature;
        [&[first, second, 5 + area.len() as u8, 1, flags][..], &area].concat()
    };
    areas.into_iter().enumerate().map(entry).collect()
}

/// Splits a link's target. An empty component is the root, as in other writers, which readers turn
/// into a slash; one at the end is omitted.
pub(super) fn of_target(target: &[u8]) -> Vec<Component<'_>> {
    let target = target.strip_suffix(b"/").unwrap_or(target);
    let none: &[u8] = &[];
    let components = target.split(|&byte| byte == b'/').map(|name| match name {
        b"" => (ROOT, none),
        b"." => (CURRENT, none),
        b".." => (PARENT, none),
        name => (0, name),
    });
    components.collect()
}

/// True if a target is unchanged after splitting and joining.
pub(super) fn holds_target(target: &[u8]) -> bool {
    target == b"/" || !target.ends_with(b"/") || target.ends_with(b"//")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_continues_in_other_entries() {
        let long = vec![b'x'; 600];
        let made = entries(*b"SL", [(0, &b"a"[..]), (0, &long)]);
        assert_eq!(made.len(), 3);
        assert!(made.iter().all(|entry| entry.len() <= 255 && usize::from(entry[2]) == entry.len()));
        assert_eq!(made.iter().map(|entry| entry[4]).collect::<Vec<_>>(), [1, 1, 0]);
        let text: Vec<u8> =
            made.iter().flat_map(|entry| entry[5..].to_vec()).filter(|&b| b == b'x').collect();
        assert_eq!(text, long);
        assert_eq!(entries(*b"AL", [(0, &b""[..])]), [b"AL\x07\x01\0\0\0".to_vec()]);
    }

    #[test]
    fn targets_are_held_unless_they_end_with_a_slash() {
        for (target, held) in [
            ("a", true),
            ("/", true),
            ("/a/../b", true),
            ("./a", true),
            ("a//b", true),
            ("//", true),
            ("a//", true),
            ("a/", false),
            ("/a/", false),
        ] {
            assert_eq!(holds_target(target.as_bytes()), held, "{target}");
        }
        let components = of_target(b"/a/../.");
        assert_eq!(components, [(ROOT, &b""[..]), (0, b"a"), (PARENT, b""), (CURRENT, b"")]);
        assert_eq!(of_target(b"a//b"), [(0, &b"a"[..]), (ROOT, b""), (0, b"b")]);
        assert_eq!(of_target(b"/"), [(ROOT, &b""[..])]);
    }
}
