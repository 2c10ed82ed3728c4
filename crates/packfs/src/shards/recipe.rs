//! Options of a plan, as texts that its machines read.

use crate::PackOptions;
use crate::options::{Mark, Options, clamp, source_date_epoch};
use packfs_core::{Error, ErrorKind, FileImage, Result, Silent};
use packfs_format::{Format, Merging};
use packfs_shards::{PlanSource, Recipe, digest_of};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Returns the recipe of options by names and texts, as [`Options::set`] takes them. Paths of files
/// that they name become absolute, and the files must stay as they are.
///
/// Errors: `Usage` for options that shards do not have; `Io` for files that cannot be read.
pub fn recipe<'a>(texts: impl IntoIterator<Item = (&'static str, &'a OsStr)>) -> Result<Recipe> {
    let mut recipe = Recipe { epoch: source_date_epoch::<i64>()?, ..Recipe::default() };
    let infos = PackOptions::infos();
    for (name, text) in texts {
        let info = infos.iter().find(|info| info.has_name(name));
        let text = match info.and_then(|info| (info.names)(text)) {
            Some(path) => file_of(&mut recipe, &path)?,
            None => text.to_owned(),
        };
        recipe.options.push((name.to_owned(), utf8(text)?));
    }
    recipe.format = format(&options(&recipe)?)?.name().to_owned();
    Ok(recipe)
}

/// Adds a file to a recipe, and returns its path.
fn file_of(recipe: &mut Recipe, path: &Path) -> Result<OsString> {
    if path == Path::new("-") {
        let error = Error::usage("cannot plan with standard input: shards are packed later");
        return Err(error.hint("name a file that all machines have"));
    }
    let path =
        std::path::absolute(path).map_err(|error| Error::io(format!("cannot find {path:?}"), error))?;
    let digest = digest_of(&FileImage::open(&path)?, &Silent)?;
    let path = path.into_os_string();
    recipe.files.push((utf8(path.clone())?, digest));
    Ok(path)
}

fn utf8(text: OsString) -> Result<String> {
    let wrong = |text: OsString| Error::usage(format!("cannot plan with {text:?}: not UTF-8"));
    text.into_string().map_err(wrong)
}

/// Returns the options of packing.
///
/// Errors: `Usage` for values that are none; `Failed` for files that changed.
pub(super) fn options(recipe: &Recipe) -> Result<PackOptions> {
    for (path, planned) in &recipe.files {
        let found = digest_of(&FileImage::open(Path::new(path))?, &Silent)?;
        if found != *planned {
            let error = Error::failed(format!("{path:?} changed since planning: its SHA-256 is {found}"));
            return Err(error.hint("plan again, or bring the file back"));
        }
    }
    let mut options = PackOptions { for_merging: true, ..PackOptions::default() };
    let infos = PackOptions::infos();
    for (name, text) in &recipe.options {
        match infos.iter().find(|info| info.has_name(name)) {
            Some(info) if info.is(Mark::Whole) || info.is(Mark::Run) => {
                return Err(Error::usage(format!("option {name} is not one of shards")).at("plan"));
            }
            Some(info) => options.set(info.name, text).map_err(|error| error.at("plan"))?,
            // The format knows it, or refuses it.
            None => options.options.push((name.clone(), text.clone())),
        }
    }
    options.shape.keep_going = options.keep_going;
    clamp(&mut options.shape, recipe.epoch);
    options.format.get_or_insert_with(|| packfs_formats::DEFAULT.to_owned());
    Ok(options)
}

/// Checks that shards can be packed by options, and merged.
///
/// Errors: `Usage` for options that the format refuses, `Unsupported` for a format whose images
/// cannot be merged.
pub(super) fn check(options: &PackOptions) -> Result<()> {
    let format = format(options)?;
    let none = Merging {
        volumes: Vec::new(),
        made_at: 0,
        data_len: 0,
        kernel: None,
        data_files: Vec::new(),
        is_flat: false,
        options: Vec::new(),
    };
    if let Err(error) = format.merger(&none)
        && error.kind() == ErrorKind::Unsupported
    {
        return Err(error);
    }
    let shape = &options.shape;
    let moves = shape.strip_components > 0 || !shape.strip_prefix.is_root() || !shape.prefix.is_root();
    if moves && !shape.additions.is_empty() {
        let error = Error::usage("cannot plan added entries together with options that move all others");
        return Err(error.hint("pack the added entries apart, and merge both images"));
    }
    let packer = format.packer(&options.settings())?;
    if packer.wraps().is_some() || !packer.layout().data_files().is_empty() {
        let error = Error::usage("images whose data lies in other files cannot be merged");
        return Err(error.hint("packfs merge --devices leaves the data in the shards"));
    }
    Ok(())
}

/// Refuses options by which an image has other entries than the lists of its plan.
///
/// Errors: `Usage`.
pub(super) fn check_comparable(options: &PackOptions) -> Result<()> {
    let shape = &options.shape;
    let moves = shape.strip_components > 0 || !shape.strip_prefix.is_root() || !shape.prefix.is_root();
    let adds = !shape.additions.is_empty() || shape.whiteouts.is_some() || shape.follow_symlinks;
    if moves || adds {
        let error = Error::usage("cannot compare the image with the plan: its options move or add entries");
        return Err(error.hint("packfs diff compares it with an image of the same options"));
    }
    Ok(())
}

/// Refuses filters of a list, which says itself what it has.
///
/// Errors: `Usage`.
pub(super) fn check_filters(options: &PackOptions, input: &PlanSource<'_>) -> Result<()> {
    let shape = &options.shape;
    let globs = [&shape.exclude, &shape.include, &shape.ignore_files];
    let filters = globs.iter().any(|globs| !globs.is_empty()) || shape.one_file_system;
    if filters && matches!(input, PlanSource::List { .. }) {
        let error = Error::usage("cannot exclude entries of a list: it cannot be used with filters");
        return Err(error.hint("leave the entries out of the list"));
    }
    Ok(())
}

fn format(options: &PackOptions) -> Result<&'static dyn Format> {
    let name = options.format.as_deref().unwrap_or(packfs_formats::DEFAULT);
    packfs_formats::by_name(name).ok_or_else(|| Error::usage(format!("unknown format {name:?}")))
}
