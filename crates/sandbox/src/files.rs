//! Restriction of files by Landlock.

use crate::Sandbox;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use packfs_core::{Error, Result};
use std::path::Path;

/// Newest interface whose rights are requested; older kernels ignore rights they do not know.
const NEWEST: ABI = ABI::V6;

/// Restricts this thread and those it starts; returns the reason if the kernel cannot.
pub(crate) fn restrict(sandbox: &Sandbox) -> Result<Option<String>> {
    let ruleset = match ruleset() {
        Ok(ruleset) => ruleset,
        // Before 5.19 files cannot be linked or renamed across directories, which unpacking needs.
        Err(_) => return Ok(Some("the kernel has none, or one older than Linux 5.19's".into())),
    };
    let ruleset = add_rules(ruleset, sandbox)?;
    let status = ruleset.restrict_self().map_err(refused)?;
    Ok(match status.ruleset {
        RulesetStatus::NotEnforced => Some("the kernel does not enforce it".into()),
        RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced => None,
    })
}

fn ruleset() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V2))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()
}

fn add_rules(mut ruleset: RulesetCreated, sandbox: &Sandbox) -> Result<RulesetCreated> {
    let read_dir = AccessFs::ReadFile | AccessFs::ReadDir;
    for path in &sandbox.read {
        // A missing file cannot be read in any case.
        let Ok(metadata) = std::fs::metadata(path) else { continue };
        let access = if metadata.is_dir() { read_dir } else { AccessFs::ReadFile.into() };
        ruleset = add(ruleset, path, access)?;
    }
    let everything = AccessFs::from_all(NEWEST) & !(AccessFs::Execute | AccessFs::IoctlDev);
    let naming = AccessFs::MakeReg | AccessFs::RemoveFile | AccessFs::Refer;
    let scratch = AccessFs::MakeReg
        | AccessFs::RemoveFile
        | AccessFs::ReadFile
        | AccessFs::WriteFile
        | AccessFs::Truncate;
    for (dirs, access) in
        [(&sandbox.fill, everything), (&sandbox.name_in, naming), (&sandbox.scratch, scratch)]
    {
        for dir in dirs {
            ruleset = add(ruleset, dir, access)?;
        }
    }
    Ok(ruleset)
}

fn add(ruleset: RulesetCreated, path: &Path, access: BitFlags<AccessFs>) -> Result<RulesetCreated> {
    let fd = PathFd::new(path)
        .map_err(|error| Error::io(format!("cannot open {path:?}"), std::io::Error::other(error)))?;
    ruleset.add_rule(PathBeneath::new(fd, access)).map_err(refused)
}

fn refused(error: RulesetError) -> Error {
    Error::failed(format!("cannot restrict this process by Landlock: {error}"))
}
