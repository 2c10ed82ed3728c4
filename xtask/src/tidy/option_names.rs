//! Check that an option is named in its row alone.

use super::sources::File;

/// The tables of options.
const TABLES: &str = "crates/packfs/src/options/";

/// Limits, whose table the engine has, too.
const LIMITS: &str = "crates/core/src/limits.rs";

/// Trees in which words have other meanings: other tools and formats with options of their own,
/// data of tests and measurements.
const MAY_NAME: [&str; 7] = [
    "crates/codec/",
    "crates/formats/",
    "crates/hostile/",
    "crates/names/",
    "crates/testkit/",
    "lab/",
    "xtask/",
];

/// Names that other things have, too: options of other verbs and functions, a field of C.
const OTHERS: [(&str, &str); 4] = [
    ("crates/capi/src/session.rs", "partition-table"),
    ("crates/cli/src/verbs/verity/mod.rs", "block-size"),
    ("crates/cli/src/verbs/verity/mod.rs", "root-hash"),
    ("python/src/jobs.rs", "made-at"),
];

pub fn check(files: &[File]) -> Vec<String> {
    let rows = rows(files);
    if rows.is_empty() {
        return vec![format!("no rows of options found in {TABLES}")];
    }
    let judged = files.iter().filter(|file| {
        let is_product = file.path.contains("/src/") && !file.is_test();
        is_product && !MAY_NAME.iter().any(|place| file.path.starts_with(place))
    });
    judged.flat_map(|file| found(file, &rows)).collect()
}

/// Returns names of several words with the file of their row: single words have other meanings.
fn rows(files: &[File]) -> Vec<(String, &str)> {
    let tables = files.iter().filter(|file| file.path.starts_with(TABLES) || file.path == LIMITS);
    let named = tables.flat_map(|file| {
        let lines = file.code().filter(|line| !line.trim_start().starts_with("//"));
        let is_row = |line: &&str| line.contains("\", ") && !line.contains("const ");
        let names = lines.filter(is_row).filter_map(|line| line.split('"').nth(1));
        names.map(|name| (name.to_owned(), file.path.as_str()))
    });
    named.filter(|(name, _)| is_name(name)).collect()
}

fn is_name(text: &str) -> bool {
    text.contains('-') && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
}

fn found(file: &File, rows: &[(String, &str)]) -> Vec<String> {
    let (mut faults, mut is_in_attribute, mut is_field) = (vec![], false, false);
    for (line, at) in file.code().zip(1..) {
        let line = line.trim();
        if line.starts_with("//") {
            continue;
        }
        let literals = line.split('"').skip(1).step_by(2);
        let field = line.split(':').next().filter(|_| is_field);
        for word in literals.chain(field).map(|word| word.replace('_', "-")) {
            let row = rows.iter().find(|(name, table)| *name == word && *table != file.path);
            let is_other = OTHERS.iter().any(|(path, name)| *path == file.path && *name == word);
            if let Some((name, table)) = row.filter(|_| !is_other) {
                faults.push(format!("{}:{at} names the option {name}, which {table} has", file.path));
            }
        }
        is_in_attribute |= line.starts_with("#[arg(");
        is_field = is_in_attribute && line.ends_with(")]");
        is_in_attribute &= !is_field;
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_named_in_its_row_and_in_tests_alone() {
        let rows = "    /// Keep only\n    min_gain: Gain = Gain::default(), \"min-gain\", GAIN, \"Compression\" {};\n";
        let table = || File::new("crates/packfs/src/options/pack.rs", rows);
        let faults = |path: &str, text: &str| check(&[table(), File::new(path, text)]).len();
        for offence in [
            "fn f(given: &Given) -> u8 { given.get(\"min_gain\") }\n",
            "const SHOWN: [&str; 1] = [\"min-gain\"];\n",
            "    #[arg(long, value_name = \"PERCENT\")]\n    min_gain: Option<u8>,\n",
        ] {
            assert_eq!(faults("crates/cli/src/verbs/plan.rs", offence), 1, "{offence}");
            assert_eq!(faults("python/src/pack.rs", offence), 1, "{offence}");
            assert_eq!(faults("crates/names/src/ng_pack.rs", offence), 0, "{offence}");
            assert_eq!(faults("crates/cli/tests/cli/packing.rs", offence), 0, "{offence}");
            let test = format!("#[cfg(test)]\nmod tests {{\n{offence}}}\n");
            assert_eq!(faults("crates/cli/src/verbs/plan.rs", &test), 0, "{offence}");
        }
        assert_eq!(faults("crates/pack/src/lib.rs", "    pub min_gain: Gain, // see --min-gain\n"), 0);
        assert_eq!(check(&[]).len(), 1);
    }
}
