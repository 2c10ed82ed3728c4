//! Check for literal names of formats outside of formats, their list, tests, and measurements.

use super::sources::File;

/// Places with literal names: the formats, hostile inputs, test helpers, the lab, whose data name
/// formats, and the format of layers of OCI images.
const MAY_NAME: [&str; 7] = [
    "crates/formats/",
    "crates/hostile/",
    "crates/names/",
    "crates/remote/src/platform.rs",
    "crates/testkit/",
    "lab/",
    "xtask/",
];

pub fn check(files: &[File]) -> Vec<String> {
    let names = names(files);
    if names.is_empty() {
        return vec!["no FormatInfo found in crates/formats".to_owned()];
    }
    let others = files.iter().filter(|file| !may_name(&file.path));
    let product = others.filter(|file| file.path.contains("/src/") && !file.is_test());
    product
        .flat_map(|file| found(file, &names).map(|at| format!("{}:{at} names a format", file.path)))
        .collect()
}

/// Returns true for files that may name formats.
pub fn may_name(path: &str) -> bool {
    MAY_NAME.iter().any(|place| path.starts_with(place))
}

/// Returns the name in each `FormatInfo`.
pub fn names(files: &[File]) -> Vec<String> {
    let formats = files.iter().filter(|file| file.path.starts_with("crates/formats/") && !file.is_test());
    let infos = formats.flat_map(|file| file.text.split("FormatInfo = FormatInfo {").skip(1));
    infos
        .filter_map(|info| info.trim_start().strip_prefix("name: \"")?.split('"').next().map(str::to_owned))
        .collect()
}

fn found<'a>(file: &'a File, names: &'a [String]) -> impl Iterator<Item = usize> + 'a {
    let lines = file.code().enumerate();
    let spells =
        |line: &str| line.split('"').skip(1).step_by(2).any(|text| names.iter().any(|name| name == text));
    // Features may have the name of the format that they bring.
    let is_code = |line: &str| !["//", "#[cfg("].iter().any(|start| line.trim_start().starts_with(start));
    lines.filter(move |(_, line)| is_code(line) && spells(line)).map(|(index, _)| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_code_is_a_fault_and_in_comments_tests_and_formats_none() {
        let info = "static INFO: FormatInfo = FormatInfo {\n    name: \"erofs\",\n";
        let format = || File::new("crates/formats/erofs/src/info.rs", info);
        let faults = |path: &str, text: &str| check(&[format(), File::new(path, text)]).len();
        let code = "fn f(driver: &str) -> bool { driver == \"erofs\" }\n";
        assert_eq!(faults("crates/mount/src/kernel.rs", code), 1);
        assert_eq!(faults("crates/mount/src/kernel.rs", "// \"erofs\"\n"), 0);
        assert_eq!(
            faults("crates/mount/src/kernel.rs", &format!("#[cfg(test)]\nmod tests {{\n{code}}}\n")),
            0
        );
        assert_eq!(faults("crates/formats/erofs/src/lib.rs", code), 0);
        assert_eq!(faults("crates/mount/tests/kernel.rs", code), 0);
        assert_eq!(check(&[]).len(), 1);
    }
}
