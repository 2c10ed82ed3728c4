//! Plans with the packed shards of a store, as one input each.

use super::Base;
use packfs::shards::{Plan, PlannedShard, Recipe, Sidecar, TOOL_VERSION};
use packfs::{Error, Result, ResultExt};
use sha2::{Digest, Sha256};

/// Bytes between the parts of an input: `plan.json`, then list, sidecar, and image of each shard.
pub(crate) const BETWEEN: &[u8] = b"\n-- part --\n";

/// Records of both lists, without their NULs.
const LISTS: [&[&str]; 2] = [
    &["d 755 0 0 0 0.000000000 ", "d 755 0 0 0 0.000000000 a", "f 644 0 0 9000 0.000000000 a/long"],
    &["D 755 0 0 0 0.000000000 ", "D 755 0 0 0 0.000000000 a", "f 644 0 0 3 0.000000000 a/short"],
];

/// Returns SHA-256 in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    packfs::to_hex(&Sha256::digest(bytes))
}

/// Plans of two shards. The last byte says that digests are put right before the input is tried,
/// or (0) that they are not.
pub(super) fn plans() -> Result<Vec<Base>> {
    let mut all = Vec::new();
    for format in ["squashfs", "erofs"] {
        let parts = parts(format)?.join(BETWEEN);
        for (right, what) in [(0, "as they are"), (1, "put right")] {
            let name = format!("shards of {format}, digests {what}");
            all.push(Base { name, bytes: [&parts[..], &[right]].concat() });
        }
    }
    Ok(all)
}

fn parts(format: &str) -> Result<Vec<Vec<u8>>> {
    let recipe = Recipe { format: format.into(), ..Recipe::default() };
    let recipe_sha256 = recipe.digest()?;
    let folder = tempfile::tempdir().or_io(|| "no temporary folder")?;
    let long = "long ".repeat(1800);
    let (mut shards, mut parts) = (Vec::new(), Vec::new());
    for (records, file) in LISTS.iter().zip([("a/long", &*long), ("a/short", "abc")]) {
        let path = folder.path().join("image");
        packfs::pack_files([file], &path)?.format(format).run()?;
        let image = std::fs::read(&path).or_io(|| "cannot read an image")?;
        let list: Vec<u8> = records.iter().flat_map(|record| [record.as_bytes(), b"\0"].concat()).collect();
        let sidecar = Sidecar {
            packfs_shard: 1,
            tool_version: TOOL_VERSION.into(),
            recipe_sha256: recipe_sha256.clone(),
            list_sha256: sha256(&list),
            size: image.len() as u64,
            sha256: sha256(&image),
            // It is shorter than both ends.
            ends_sha256: sha256(&image),
            nodes: 3,
            files: 1,
            file_bytes: file.1.len() as u64,
            unreadable: 0,
        };
        shards.push(PlannedShard { list_sha256: sha256(&list), files: 1, ..PlannedShard::default() });
        parts.extend([list, sidecar.text()?, image]);
    }
    let plan = Plan {
        packfs_plan: 1,
        tool_version: TOOL_VERSION.into(),
        source: "/source".into(),
        recipe,
        recipe_sha256,
        root: Default::default(),
        totals: Default::default(),
        shards,
        folder: Default::default(),
    };
    let text = serde_json::to_vec(&plan).map_err(|error| Error::failed(error.to_string()))?;
    parts.insert(0, text);
    Ok(parts)
}
