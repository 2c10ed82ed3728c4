//! Names of formats as literals: only formats, their list, tests and what measures them spell one.

use super::sources::File;

const NAMES: [&str; 8] =
    ["squashfs", "squashfs-legacy", "erofs", "cramfs", "iso9660", "romfs", "cloop", "partitions"];

/// Places that may spell them: the formats, inputs made to harm, helpers of tests, and the lab, whose data name them.
const MAY_NAME: [&str; 5] = ["crates/formats/", "crates/hostile/", "crates/testkit/", "lab/", "xtask/"];

pub fn check(files: &[File]) -> Vec<String> {
    let others = files.iter().filter(|file| !MAY_NAME.iter().any(|place| file.path.starts_with(place)));
    let product = others.filter(|file| file.path.contains("/src/") && !file.is_test());
    product.flat_map(|file| found(file).map(|at| format!("{}:{at} spells one", file.path))).collect()
}

fn found(file: &File) -> impl Iterator<Item = usize> + '_ {
    let lines = file.code().enumerate();
    let spells = |line: &str| line.split('"').skip(1).step_by(2).any(|text| NAMES.contains(&text));
    let is_code = |line: &str| !line.trim_start().starts_with("//");
    lines.filter(move |(_, line)| is_code(line) && spells(line)).map(|(index, _)| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_code_is_a_fault_and_in_comments_tests_and_formats_none() {
        let faults = |path: &str, text: &str| check(&[File::new(path, text)]).len();
        let code = "fn f(driver: &str) -> bool { driver == \"erofs\" }\n";
        assert_eq!(faults("crates/mount/src/kernel.rs", code), 1);
        assert_eq!(faults("crates/mount/src/kernel.rs", "// \"erofs\"\n"), 0);
        assert_eq!(
            faults("crates/mount/src/kernel.rs", &format!("#[cfg(test)]\nmod tests {{\n{code}}}\n")),
            0
        );
        assert_eq!(faults("crates/formats/erofs/src/lib.rs", code), 0);
        assert_eq!(faults("crates/mount/tests/kernel.rs", code), 0);
    }
}
