//! Writes the corpus of a property into a folder, for whatever fuzzes it:
//! `packfs-corpus PROPERTY FOLDER`. The words that inputs are told by go into `FOLDER.dict`.
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
    std::fs::write(folder.with_extension("dict"), dictionary())?;
    Ok(inputs.len())
}

/// Words of libFuzzer's dictionary: the magics of all formats, and `fuzz/images.dict`.
fn dictionary() -> String {
    let magics = packfs::formats::all().iter().flat_map(|format| format.info().magics);
    let words = magics.map(|magic| {
        let bytes: String = magic.bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect();
        format!("\"{bytes}\"\n")
    });
    include_str!("../../../../fuzz/images.dict").chars().chain(words.collect::<String>().chars()).collect()
}
