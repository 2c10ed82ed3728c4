//! The JSON schema of all documents, docs/guide/json-schema.json, and their tables in
//! docs/guide/cli.md. `PACKFS_WRITE_DOCUMENTS=1 cargo test -p packfs-cli schema` writes both;
//! `tests/cli/documents.rs` compares the output of every verb with the schema.

use crate::verbs::*;
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Document of a verb.
struct Row {
    /// Key in the schema.
    name: &'static str,
    /// Command, as the heading in the guide.
    command: &'static str,
    /// True for an array of objects.
    is_array: bool,
    schema: fn(&mut SchemaGenerator) -> schemars::Schema,
}

fn row<T: JsonSchema>(name: &'static str, command: &'static str, is_array: bool) -> Row {
    Row { name, command, is_array, schema: T::json_schema }
}

fn rows() -> [Row; 25] {
    [
        row::<ls::Entry<'_>>("ls", "ls", true),
        row::<stat::Document<'_>>("stat", "stat", true),
        row::<mount::Document<'_>>("mount-list", "mount --list", true),
        row::<cache::Document<'_>>("cache", "cache", true),
        row::<oci::Document<'_>>("oci", "oci", false),
        row::<oci::Row>("oci-ls", "oci ls", true),
        row::<composefs::Document<'_>>("composefs-pack", "composefs pack", false),
        row::<info::Document<'_>>("info", "info", false),
        row::<info::Scanned<'_>>("info-scan", "info --scan", false),
        row::<info::Compressed<'_>>("info-compression", "info --compression", true),
        row::<pack::Document<'_>>("pack", "pack", false),
        row::<merge::Document<'_>>("merge", "merge", false),
        row::<plan::Document<'_>>("plan", "plan", false),
        row::<pack_shard::Document<'_>>("pack-shard", "pack-shard", false),
        row::<packfs::sink::UnpackReport>("unpack", "unpack", false),
        row::<check::Document<'_>>("check", "check", false),
        row::<diff::Document<'_>>("diff", "diff", false),
        row::<digest::Document<'_>>("digest", "digest", true),
        row::<verity::Document<'_>>("verity", "verity", false),
        row::<verity::Verified<'_>>("verity-verify", "verity --verify", false),
        row::<verity::Measured<'_>>("verity-fs", "verity --fs", true),
        row::<verify::Document<'_>>("verify", "verify", false),
        row::<verify::ShardsDocument<'_>>("verify-plan", "verify PLAN", false),
        row::<protect::Document<'_>>("protect", "protect", false),
        row::<repair::Document<'_>>("repair", "repair", false),
    ]
}

/// Returns the schema of one object of a document.
fn object(row: &Row) -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|it| it.inline_subschemas = true);
    let mut schema = (row.schema)(&mut settings.into_generator()).into();
    optional_is_not_null(&mut schema);
    schema
}

/// Removes null from the types of optional keys, which without a value are left out; but keeps it
/// for those that say `nullable`.
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

/// Returns the schema of all documents.
fn schema() -> Value {
    let documents: Map<String, Value> = rows()
        .iter()
        .map(|row| match row.is_array {
            true => (row.name.to_owned(), json!({"type": "array", "items": object(row)})),
            false => (row.name.to_owned(), object(row)),
        })
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Documents that packfs prints with --json",
        "$defs": documents,
    })
}

/// Returns a section for each document: a table of its keys.
fn tables() -> String {
    let mut text = String::new();
    for row in &rows() {
        let kind = if row.is_array { "an array of objects" } else { "an object" };
        let _ = write!(text, "\n### `{}`: {kind}\n\n| key | type | meaning |\n|---|---|---|\n", row.command);
        keys(&object(row), "", &mut text);
    }
    text
}

/// Adds a row for each key of an object, and of the objects in it.
fn keys(object: &Value, prefix: &str, text: &mut String) {
    let required = object["required"].as_array().cloned().unwrap_or_default();
    for (key, property) in object["properties"].as_object().into_iter().flatten() {
        // The introduction of the guide describes these.
        if key.ends_with("_bytes") && property["description"].as_str().is_some_and(is_about_bytes) {
            continue;
        }
        let meaning = property["description"].as_str().unwrap_or_default().replace('\n', " ");
        let optional = if required.contains(&json!(key)) { "" } else { ", optional" };
        let _ = writeln!(text, "| `{prefix}{key}` | {}{optional} | {meaning} |", type_name(property));
        keys(property, &format!("{prefix}{key}."), text);
        keys(&property["items"], &format!("{prefix}{key}[]."), text);
    }
    variants(object, prefix, text);
}

/// Adds a row for each variant of an object that has a key with the variant's name.
fn variants(object: &Value, prefix: &str, text: &mut String) {
    for variant in object["oneOf"].as_array().into_iter().flatten() {
        let meaning = variant["description"].as_str().unwrap_or_default().replace('\n', " ");
        let properties = variant["properties"].as_object().into_iter().flatten();
        let (mut tag, mut further) = (String::new(), Vec::new());
        for (key, property) in properties {
            match property["const"].as_str() {
                Some(value) => tag = format!("`{prefix}{key}` = `{value}`"),
                None if key.ends_with("_bytes") => {}
                None => further.push(format!("`{key}`: {}", type_name(property))),
            }
        }
        let further = if further.is_empty() { String::new() } else { format!("; {}", further.join(", ")) };
        let _ = writeln!(text, "| {tag} | string{further} | {meaning} |");
    }
}

fn is_about_bytes(description: &str) -> bool {
    description.ends_with("in hexadecimal, if they are not UTF-8.")
}

fn type_name(property: &Value) -> String {
    match &property["type"] {
        Value::String(name) if name == "array" && property["items"]["type"] != "object" => {
            format!("array of {}s", type_name(&property["items"]))
        }
        Value::String(name) if name == "array" => "array of objects".into(),
        Value::String(name) => name.clone(),
        names => {
            names.as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
        }
    }
}

fn guide(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide").join(name)
}

/// Compares a file with what it should hold, or writes that.
fn compare(name: &str, text: &str) {
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
fn the_tables_in_the_guide_are_those_of_the_documents() {
    let (begin, end) = ("<!-- tables of JSON: begin -->\n", "\n<!-- tables of JSON: end -->");
    let found = std::fs::read_to_string(guide("cli.md")).unwrap();
    let (before, rest) = found.split_once(begin).expect("cli.md has no mark for the tables");
    let (_, after) = rest.split_once(end).expect("cli.md has no mark for the end of the tables");
    compare("cli.md", &format!("{before}{begin}{}{end}{after}", tables().trim_end()));
}

#[test]
fn every_key_has_a_meaning() {
    fn missing(object: &Value, found: &mut Vec<String>) {
        for (key, property) in object["properties"].as_object().into_iter().flatten() {
            // A variant describes both values that differ, and what it is.
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
