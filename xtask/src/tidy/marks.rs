//! Check for names of marks of layers outside of their definition.

use super::sources::File;

/// The file that says which entries of a layer hide others.
const DEFINITION: &str = "crates/core/src/overlay.rs";

/// Parts of names of attributes, in code and comments, which become help; begin of a literal with
/// the name of a mark of AUFS.
const NAMES: [&str; 3] = ["overlay.opaque", "overlay.whiteout", "\".wh."];

/// Trees of tests and measurements, which have marks as data.
const MAY_NAME: [&str; 4] = ["crates/hostile/", "crates/testkit/", "lab/", "xtask/"];

pub fn check(files: &[File]) -> Vec<String> {
    let is_judged =
        |file: &&File| !file.is_test() && !MAY_NAME.iter().any(|place| file.path.starts_with(place));
    let (definition, others): (Vec<&File>, Vec<&File>) =
        files.iter().filter(is_judged).partition(|file| file.path == DEFINITION);
    let missing = NAMES.iter().filter(|name| !definition.iter().any(|file| file.text.contains(**name)));
    let missing = missing.map(|name| format!("{DEFINITION} lacks {name}, which it defines"));
    missing.chain(others.into_iter().flat_map(found)).collect()
}

fn found(file: &File) -> Vec<String> {
    let lines = file.code().zip(1..);
    let named = lines
        .flat_map(|(line, at)| NAMES.iter().filter(|name| line.contains(**name)).map(move |name| (name, at)));
    named.map(|(name, at)| format!("{}:{at} says {name}, which {DEFINITION} defines", file.path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_named_in_its_definition_and_in_tests_alone() {
        let names = "b\"trusted.overlay.opaque\" b\"user.overlay.whiteout\" b\".wh.\"";
        let definition = || File::new(DEFINITION, names);
        let faults = |path: &str, text: &str| check(&[definition(), File::new(path, text)]).len();
        for offence in [
            "const OPAQUE: &[u8] = b\"user.overlay.opaque\";\n",
            "    /// Files with the attribute trusted.overlay.whiteout are left out.\n",
            "fn f(name: &[u8]) -> bool { name.starts_with(b\".wh.\") }\n",
        ] {
            assert_eq!(faults("crates/merge/src/scan.rs", offence), 1, "{offence}");
            assert_eq!(faults("python/src/jobs.rs", offence), 1, "{offence}");
            assert_eq!(faults("crates/merge/tests/scan.rs", offence), 0, "{offence}");
            let test = format!("#[cfg(test)]\nmod tests {{\n{offence}}}\n");
            assert_eq!(faults("crates/merge/src/scan.rs", &test), 0, "{offence}");
        }
        assert_eq!(faults("crates/merge/src/scan.rs", "use overlay::OPAQUE; // names with .wh. too\n"), 0);
        assert_eq!(check(&[]).len(), 3);
    }
}
