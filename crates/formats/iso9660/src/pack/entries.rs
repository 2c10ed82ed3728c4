//! Entries of Rock Ridge and AAIP for a record.

use super::components;
use super::losses::{have_room, held_xattrs, stored_seconds};
use super::stored::{Store, Stored};
use crate::disk::*;
use packfs_core::{Civil, DeviceNumber, Error, Node, NodeId, NodeKind, Result, Timestamp};
use zerocopy::IntoBytes;

const NAME_PART_MAX: usize = u8::MAX as usize - 5;
/// Entry in the root that announces Rock Ridge.
const ROCK_RIDGE: [&[u8]; 3] = [
    b"RRIP_1991A",
    b"THE ROCK RIDGE INTERCHANGE PROTOCOL PROVIDES SUPPORT FOR POSIX FILE SYSTEM SEMANTICS",
    b"PLEASE CONTACT DISC PUBLISHER FOR SPECIFICATION SOURCE.  SEE PUBLISHER IDENTIFIER IN PRIMARY VOLUME DESCRIPTOR FOR CONTACT INFORMATION.",
];
/// Namespaces of attributes, and their codes.
const NAMESPACES: [(&[u8], u8); 4] = [(b"system.", 2), (b"user.", 3), (b"trusted.", 5), (b"security.", 6)];

fn entry(signature: [u8; 2], fields: &[u8]) -> Vec<u8> {
    let [first, second] = signature;
    [&[first, second, 4 + fields.len() as u8, 1], fields].concat()
}

fn numbers(signature: [u8; 2], numbers: &[u32]) -> Vec<u8> {
    let fields: Vec<Both32> = numbers.iter().copied().map(Both32::new).collect();
    entry(signature, fields.as_bytes())
}

pub(super) fn record_time(time: Timestamp) -> RecordTime {
    let civil = Civil::of_seconds(stored_seconds(time));
    RecordTime {
        year: (civil.year - 1900) as u8,
        month: civil.month,
        day: civil.day,
        hour: civil.hour,
        minute: civil.minute,
        second: civil.second,
        offset: 0,
    }
}

/// Returns entries of every record: owner, permissions, links, number, and time.
fn common(node: &Node, id: NodeId) -> Vec<Vec<u8>> {
    let mode = u32::from(node.meta.mode) | node.kind.file_type().mode_bits();
    let owner = node.meta.owner;
    let time = record_time(node.meta.mtime);
    vec![
        numbers(*b"PX", &[mode, node.links, owner.uid, owner.gid, id.0 + 1]),
        entry(*b"TF", &[&[TF_MODIFY], time.as_bytes()].concat()),
    ]
}

/// Returns entries of a directory's record of itself or its parent.
pub(super) fn of_directory(store: &Store<'_>, id: NodeId, is_root_itself: bool) -> Result<Vec<Vec<u8>>> {
    let node = store.tree.node(id);
    let mut entries = common(node, id);
    if is_root_itself {
        entries.insert(0, entry(*b"SP", &[SP_CHECK[0], SP_CHECK[1], 0]));
        let lens = ROCK_RIDGE.map(|text| text.len() as u8);
        let announced = [&lens[..], &[1], &ROCK_RIDGE.concat()].concat();
        entries.push(entry(*b"ER", &announced));
        // The root has no record in another directory.
        entries.extend(attributes(store, id)?);
    }
    Ok(entries)
}

/// Returns entries of a record that names a file or a directory.
pub(super) fn of_name(store: &Store<'_>, id: NodeId, name: &[u8], stored: &Stored) -> Result<Vec<Vec<u8>>> {
    let node = store.tree.node(id);
    let mut entries = common(node, id);
    let parts: Vec<&[u8]> = name.chunks(NAME_PART_MAX).collect();
    for (index, part) in parts.iter().enumerate() {
        let flags = if index + 1 < parts.len() { CONTINUES } else { 0 };
        entries.push(entry(*b"NM", &[&[flags], *part].concat()));
    }
    match &node.kind {
        NodeKind::Symlink(target) => {
            entries.extend(components::entries(*b"SL", components::of_target(target)));
        }
        NodeKind::BlockDevice(number) | NodeKind::CharDevice(number) => entries.push(device(*number)),
        _ => entries.extend(store.mark(id, stored)),
    }
    entries.extend(attributes(store, id)?);
    Ok(entries)
}

/// Encodes major and minor in a word each; without a major number both in the low one, as Linux
/// packs them.
fn device(number: DeviceNumber) -> Vec<u8> {
    match number.major {
        0 => numbers(*b"PN", &[0, number.encode()]),
        major => numbers(*b"PN", &[major, number.minor]),
    }
}

fn attributes(store: &Store<'_>, id: NodeId) -> Result<Vec<Vec<u8>>> {
    let xattrs = store.tree.xattrs(store.tree.node(id).xattrs);
    if held_xattrs(xattrs).next().is_none() {
        return Ok(Vec::new());
    }
    if !have_room(xattrs) {
        let path = store.tree.path(id);
        let message = format!("{path:?} has more extended attributes than iso9660 can hold: 48 KiB are");
        return Err(Error::failed(message));
    }
    let pairs: Vec<(Vec<u8>, &[u8])> =
        held_xattrs(xattrs).map(|(name, value)| (short_name(name), &value[..])).collect();
    let parts = pairs.iter().flat_map(|(name, value)| [(0, &name[..]), (0, *value)]);
    Ok(components::entries(*b"AL", parts))
}

fn short_name(name: &[u8]) -> Vec<u8> {
    for (namespace, byte) in NAMESPACES {
        if let Some(rest) = name.strip_prefix(namespace) {
            return [&[byte], rest].concat();
        }
    }
    match name.first() {
        Some(..0x20) => [&[1], name].concat(),
        _ => name.to_vec(),
    }
}
