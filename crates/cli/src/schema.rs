//! The JSON schema of all documents, docs/guide/json-schema.json, which
//! `PACKFS_WRITE_DOCUMENTS=1 cargo test -p packfs-cli schema` writes; `tests/cli/documents.rs`
//! compares the output of every verb with it.

use crate::verbs::*;
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

struct Row {
    name: &'static str,
    /// True for an array of objects.
    is_array: bool,
    schema: fn(&mut SchemaGenerator) -> schemars::Schema,
}

fn row<T: JsonSchema>(name: &'static str, is_array: bool) -> Row {
    Row { name, is_array, schema: T::json_schema }
}

fn rows() -> [Row; 26] {
    [
        row::<ls::Entry<'_>>("ls", true),
        row::<stat::Document<'_>>("stat", true),
        row::<mount::Document<'_>>("mount-list", true),
        row::<cache::Document<'_>>("cache", true),
        row::<oci::Document<'_>>("oci", false),
        row::<oci::Row>("oci-ls", true),
        row::<composefs::Document<'_>>("composefs-pack", false),
        row::<info::Document<'_>>("info", false),
        row::<info::Scanned<'_>>("info-scan", false),
        row::<info::Compressed<'_>>("info-compression", true),
        row::<pack::Document<'_>>("pack", false),
        row::<merge::Document<'_>>("merge", false),
        row::<plan::Document<'_>>("plan", false),
        row::<pack_shard::Document<'_>>("pack-shard", false),
        row::<packfs::sink::UnpackReport>("unpack", false),
        row::<check::Document<'_>>("check", false),
        row::<diff::Document<'_>>("diff", false),
        row::<digest::Document<'_>>("digest", true),
        row::<verity::Document<'_>>("verity", false),
        row::<verity::Verified<'_>>("verity-verify", false),
        row::<verity::Measured<'_>>("verity-fs", true),
        row::<verify::Document<'_>>("verify", false),
        row::<verify::ShardsDocument<'_>>("verify-plan", false),
        row::<protect::Document<'_>>("protect", false),
        row::<repair::Document<'_>>("repair", false),
        row::<bug_report::Document>("bug-report", false),
    ]
}

fn object(row: &Row) -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|it| it.inline_subschemas = true);
    let mut schema = (row.schema)(&mut settings.into_generator()).into();
    optional_is_not_null(&mut schema);
    schema
}

/// Optional keys are omitted instead of null, except those that say `nullable`.
fn optional_is_not_null(schema: &mut Value) {
    let required = schema["required"].clone();
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (key, property) in properties.into_iter().flatten() {
        optional_is_not_null(property);
        property.get_mut("items").into_iter().for_each(optional_is_not_null);
        let is_null = property.as_object_mut().and_then(|it| it.remove("nullable")).is_some();
        let is_required = required.as_array().is_some_and(|required| required.contains(&json!(key)));
        if !is_required
            && !is_null
            && let Some([name, _null]) = property["type"].as_array().map(Vec::as_slice)
        {
            property["type"] = name.clone();
        }
    }
}

fn schema() -> Value {
    let documents: Map<String, Value> = rows()
        .iter()
        .map(|row| {
            if row.is_array {
                (row.name.to_owned(), json!({"type": "array", "items": object(row)}))
            } else {
                (row.name.to_owned(), object(row))
            }
        })
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Documents that packfs prints with --json",
        "$defs": documents,
    })
}

fn guide(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide").join(name)
}

/// Writes the file instead if requested.
pub fn compare(name: &str, text: &str) {
    if std::env::var_os("PACKFS_WRITE_DOCUMENTS").is_some() {
        std::fs::write(guide(name), text).unwrap();
    }
    let found = std::fs::read_to_string(guide(name)).unwrap_or_default();
    assert!(found == text, "docs/guide/{name} is stale; see crates/cli/src/schema.rs");
}

#[test]
fn the_schema_in_the_guide_is_that_of_the_documents() {
    compare("json-schema.json", &format!("{}\n", serde_json::to_string_pretty(&schema()).unwrap()));
}

#[test]
fn every_key_has_a_meaning() {
    fn missing(object: &Value, found: &mut Vec<String>) {
        for (key, property) in object["properties"].as_object().into_iter().flatten() {
            // A variant describes both values, so these keys need no description.
            if property["description"].is_null() && !["what", "a", "b"].contains(&key.as_str()) {
                found.push(key.clone());
            }
            missing(property, found);
            missing(&property["items"], found);
        }
        for variant in object["oneOf"].as_array().into_iter().flatten() {
            if variant["description"].is_null() {
                found.push(variant["properties"]["what"]["const"].to_string());
            }
            missing(variant, found);
        }
    }
    let mut found = Vec::new();
    rows().iter().for_each(|row| missing(&object(row), &mut found));
    assert_eq!(found, [""; 0]);
}
