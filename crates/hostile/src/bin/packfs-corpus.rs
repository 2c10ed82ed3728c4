//! Writes the corpus of a property into a folder, for whatever fuzzes it:
//! `packfs-corpus PROPERTY FOLDER`.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program of developers")]

use packfs_hostile::corpus::inputs;
use packfs_hostile::properties::PROPERTIES;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [name, folder] = &words[..] else {
        eprintln!("error: a property and a folder are needed");
        return ExitCode::from(2);
    };
    match write(name, Path::new(folder)) {
        Ok(count) => {
            println!("{count} inputs in {folder}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn write(name: &str, folder: &Path) -> Result<usize, Box<dyn std::error::Error>> {
    let property = PROPERTIES
        .into_iter()
        .find(|property| property.name == name)
        .ok_or_else(|| format!("no property {name:?}"))?;
    std::fs::create_dir_all(folder)?;
    let inputs = inputs(property.input)?;
    for (number, input) in inputs.iter().enumerate() {
        std::fs::write(folder.join(format!("base-{number:03}")), &input.bytes)?;
    }
    Ok(inputs.len())
}
