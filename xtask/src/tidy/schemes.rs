//! Check for schemes of places outside of their list.

use super::sources::File;

/// The file that names schemes.
const DEFINITION: &str = "crates/core/src/place.rs";

/// Trees of tests, measurements, and builds, and the stores: each has a file, and may name its own.
const MAY_NAME: [&str; 7] = [
    "crates/hostile/",
    "crates/remote/src/s3_signature.rs",
    "crates/remote/src/stores/",
    "crates/testkit/",
    "fuzz/",
    "lab/",
    "xtask/",
];

/// Schemes that are also the name of a verb, and of a file.
const ALSO_WORDS: [&str; 2] = ["oci", "oci-layout"];

pub fn check(files: &[File]) -> Vec<String> {
    let Some(definition) = files.iter().find(|file| file.path == DEFINITION) else {
        return vec![format!("{DEFINITION} is missing")];
    };
    let schemes = names(definition);
    let others = files.iter().filter(|file| {
        let is_free = MAY_NAME.iter().any(|place| file.path.starts_with(place));
        file.path != DEFINITION && !file.is_test() && !is_free
    });
    others.flat_map(|file| found(file, &schemes)).collect()
}

/// Returns the values of the constants in the module of schemes.
fn names(definition: &File) -> Vec<String> {
    let module = definition.text.split_once("pub mod schemes {").unwrap_or_default().1;
    let rows = module.split_once("\n}").unwrap_or_default().0.split("&str = \"").skip(1);
    rows.filter_map(|row| Some(row.split_once('"')?.0.to_owned())).collect()
}

/// Finds literals that are a scheme, alone or before what is formatted. Forms in messages, such as
/// `s3://BUCKET`, and addresses are none.
fn found(file: &File, schemes: &[String]) -> Vec<String> {
    let is_scheme = |text: &str| {
        let (name, rest) = text.split_at(text.find(':').unwrap_or(text.len()));
        let is_word = rest.is_empty() && ALSO_WORDS.contains(&name);
        let is_place =
            matches!(rest, "" | ":" | "://") || rest.starts_with("://{") && !name.starts_with("http");
        is_place && !is_word && schemes.iter().any(|scheme| scheme == name)
    };
    let is_code = |line: &str| {
        let line = line.trim_start();
        !line.starts_with("//") && !line.contains("#[cfg") && !line.contains("feature = ")
    };
    let lines = file.code().zip(1..).filter(|(line, _)| is_code(line));
    let named = lines.filter(|(line, _)| line.split('"').skip(1).step_by(2).any(is_scheme));
    named.map(|(_, at)| format!("{}:{at} names a scheme, which {DEFINITION} does", file.path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_is_named_in_the_list_and_in_tests_alone() {
        let list =
            "pub mod schemes {\n    pub const S3: &str = \"s3\";\n    pub const OCI: &str = \"oci\";\n}\n";
        let faults =
            |path: &str, text: &str| check(&[File::new(DEFINITION, list), File::new(path, text)]).len();
        for (offence, count) in [
            ("    match scheme { \"s3\" => true, _ => false }\n", 1),
            ("    text.strip_prefix(\"oci://\")\n", 1),
            ("    format!(\"oci://{host}/{name}\")\n", 1),
            ("    error.hint(\"s3://BUCKET/KEY takes images\")\n", 0),
            ("    #[cfg(feature = \"s3\")]\n", 0),
            ("    row(\"oci\", verb)\n", 0),
            ("    // the scheme \"s3\"\n", 0),
        ] {
            assert_eq!(faults("crates/packfs/src/trust.rs", offence), count, "{offence}");
            assert_eq!(faults("crates/packfs/tests/packfs/trust.rs", offence), 0, "{offence}");
            let test = format!("#[cfg(test)]\nmod tests {{\n{offence}}}\n");
            assert_eq!(faults("crates/packfs/src/trust.rs", &test), 0, "{offence}");
        }
        assert_eq!(check(&[]).len(), 1);
    }
}
