//! `cargo xtask flows`: the workflows of the repository host, on this machine.

use std::path::Path;
use std::process::Command;

use yaml_rust2::{Yaml, YamlLoader};

use crate::failure::{Failure, Result};
use crate::{shell, workspace};

/// Run the steps of a workflow in .github/workflows on this machine
///
/// Without JOB, runs what a run by hand on a branch runs. Names each step that it leaves out:
/// actions, steps and jobs with a condition, and steps with a value that only the host knows and
/// that no variable of the environment has.
#[derive(clap::Args)]
pub struct Options {
    /// Name of a file, without .yml
    workflow: String,
    /// Job to run, whether or not it has a condition
    job: Option<String>,
    /// Print the steps and run none
    #[arg(long)]
    list: bool,
}

#[derive(Debug, PartialEq)]
struct Step {
    job: String,
    name: String,
    /// Lines for a shell and variables, or why there are none.
    work: std::result::Result<(String, Vec<(String, String)>), String>,
}

pub fn run(Options { workflow, job, list }: Options) -> Result<()> {
    let path = workspace::root().join(FOLDER).join(format!("{workflow}.yml"));
    let steps = steps(&read(&path)?, job.as_deref(), |name| std::env::var(name).ok())?;
    if steps.is_empty() {
        return Err(Failure::usage(format!("{workflow} has no job {}", job.unwrap_or_default())));
    }
    for Step { job, name, work } in &steps {
        let (lines, variables) = match work {
            Ok(work) => work,
            Err(why) => {
                eprintln!("SKIPPED {job}: {name}: {why}");
                continue;
            }
        };
        eprintln!("==> {job}: {name}: {}", lines.trim_end());
        if !list {
            // The shell of the host, with the options that `shell: bash` gives.
            let mut bash = Command::new("bash");
            bash.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", lines]);
            bash.envs(variables.iter().cloned()).current_dir(workspace::root());
            shell::run(&mut bash).map_err(|failure| Failure::new(format!("{job}: {name}: {failure}")))?;
        }
    }
    Ok(())
}

const FOLDER: &str = ".github/workflows";

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| Failure::io("read", path, error))
}

/// Returns the steps of a workflow; `variable` looks a variable up.
fn steps(text: &str, wanted: Option<&str>, variable: impl Fn(&str) -> Option<String>) -> Result<Vec<Step>> {
    let documents = YamlLoader::load_from_str(text).map_err(|error| Failure::new(error.to_string()))?;
    let jobs = documents.first().and_then(|document| document["jobs"].as_hash());
    let mut found = vec![];
    for (key, job) in jobs.into_iter().flatten() {
        let id = key.as_str().unwrap_or_default();
        if wanted.is_some_and(|wanted| wanted != id) {
            continue;
        }
        let job_condition = if wanted.is_none() { condition(job) } else { None };
        for step in job["steps"].as_vec().into_iter().flatten() {
            let skipped = job_condition.clone().or_else(|| condition(step)).map_or(Ok(()), Err);
            let work = skipped.and_then(|()| {
                let lines = step["run"].as_str().ok_or_else(|| text_of(&step["uses"]))?;
                let variables = variables(job).chain(variables(step));
                let known = variables.map(|(name, value)| {
                    let found = if value.contains("${{") { variable(&name) } else { Some(value) };
                    found.map(|value| (name.clone(), value)).ok_or(format!("no {name}"))
                });
                Ok((lines.to_owned(), known.collect::<std::result::Result<_, _>>()?))
            });
            found.push(Step { job: id.to_owned(), name: text_of(&step["name"]), work });
        }
    }
    Ok(found)
}

fn condition(of: &Yaml) -> Option<String> {
    of["if"].as_str().map(|condition| format!("if {condition}"))
}

fn variables(of: &Yaml) -> impl Iterator<Item = (String, String)> {
    let rows = of["env"].as_hash().into_iter().flatten();
    rows.map(|(name, value)| (text_of(name), text_of(value)))
}

/// Returns a scalar as the host passes it on.
fn text_of(value: &Yaml) -> String {
    match value {
        Yaml::Integer(number) => number.to_string(),
        Yaml::Boolean(value) => value.to_string(),
        other => other.as_str().unwrap_or_default().to_owned(),
    }
}

/// Programs that check workflows and actions, and their arguments.
const CHECKERS: [(&str, &[&str]); 2] = [
    ("actionlint", &[]),
    (
        "zizmor",
        &["--quiet", "--offline", "--no-progress", "--persona=auditor", ".github", "integration/github"],
    ),
];

/// Checks workflows by the programs that the machine has, and returns the names of the others.
pub fn check() -> Result<Vec<&'static str>> {
    let (found, missing): (Vec<_>, Vec<_>) =
        CHECKERS.into_iter().partition(|(program, _)| shell::find_program(program).is_some());
    for (program, arguments) in found {
        shell::run(Command::new(program).args(arguments).current_dir(workspace::root()))?;
    }
    Ok(missing.into_iter().map(|(program, _)| program).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    const FLOW: &str = "
jobs:
  build:
    env:
      A: 1
    steps:
      - {name: fetch, uses: b/c@d}
      - {name: tagged, if: t, run: one}
      - {name: made, run: two, env: {B: x}}
      - {name: secret, run: three, env: {C: '${{ secrets.C }}'}}
  publish:
    if: t
    steps:
      - {name: out, run: four}
";

    fn told(wanted: Option<&str>, variable: impl Fn(&str) -> Option<String>) -> Vec<String> {
        let told = |Step { job, name, work }| format!("{job} {name} {work:?}");
        steps(FLOW, wanted, variable).unwrap().into_iter().map(told).collect()
    }

    #[test]
    fn runs_lines_and_names_what_it_leaves_out() {
        let made = r#"build made Ok(("two", [("A", "1"), ("B", "x")]))"#;
        let begin = [r#"build fetch Err("b/c@d")"#, r#"build tagged Err("if t")"#, made];
        let secret = r#"build secret Err("no C")"#;
        let publish = r#"publish out Err("if t")"#;
        assert_eq!(told(None, |_| None), [&begin[..], &[secret, publish]].concat());
        let set = |name: &str| (name == "C").then(|| "s".to_owned());
        let known = r#"build secret Ok(("three", [("A", "1"), ("C", "s")]))"#;
        assert_eq!(told(Some("build"), set), [&begin[..], &[known]].concat());
        assert_eq!(told(Some("publish"), set), [r#"publish out Ok(("four", []))"#]);
        assert_eq!(told(Some("other"), set), [""; 0]);
    }

    /// Otherwise a renamed option or script would be found on the day of a release.
    #[test]
    fn workflows_run_scripts_that_exist_and_command_lines_of_this_tool() {
        let mut checked = 0;
        for path in workspace::files_below(&workspace::root().join(FOLDER)).unwrap() {
            let all = steps(&read(&path).unwrap().replace("if:", "was:"), None, |_| Some(String::new()));
            for step in all.unwrap() {
                let lines = step.work.unwrap_or_default().0;
                for line in lines.lines().map(|line| line.split(" > ").next().unwrap_or_default()) {
                    let mut words = line.split_whitespace();
                    let first = words.next().unwrap_or_default();
                    let script = workspace::root().join(first);
                    assert!(!first.contains('/') || script.is_file(), "{}: {line}", path.display());
                    if line.starts_with("cargo xtask ") {
                        let parsed = crate::Task::try_parse_from(words);
                        assert!(parsed.is_ok(), "{}: {line}: {}", path.display(), parsed.err().unwrap());
                        checked += 1;
                    }
                }
            }
        }
        assert!(checked > 5, "{checked} lines");
    }
}
