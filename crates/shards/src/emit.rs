//! Jobs for schedulers, written into a plan: they run `packfs pack-shard` for each shard, and
//! `packfs merge` after all.

use crate::Plan;
use packfs_core::{Result, ResultExt};
use std::path::PathBuf;

/// Scheduler that jobs are written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Engine {
    /// Slurm: an array and a job that depends on it.
    Slurm,
    /// Kubernetes: an Indexed Job and a Job.
    Kubernetes,
    /// AWS Batch: job definitions, and the arguments of their submission.
    AwsBatch,
}

packfs_core::words!(Engine: "scheduler", { Slurm: "slurm", Kubernetes: "kubernetes", AwsBatch: "aws-batch" });

/// Slurm's array numbers end one below `MaxArraySize`, whose default is 1001.
const SLURM: &str = include_str!("emit/slurm.sh");
const KUBERNETES: &str = include_str!("emit/kubernetes.yaml");
const AWS_BATCH: &str = include_str!("emit/aws-batch.json");

impl Engine {
    /// Writes the job of a plan into its folder, and returns the file.
    ///
    /// Errors: `Io`.
    pub fn emit(self, plan: &Plan) -> Result<PathBuf> {
        let (name, template) = match self {
            Engine::Slurm => ("slurm.sh", SLURM),
            Engine::Kubernetes => ("kubernetes.yaml", KUBERNETES),
            Engine::AwsBatch => ("aws-batch.json", AWS_BATCH),
        };
        let count = plan.shards.len();
        let text = template
            .replace("@COUNT@", &count.to_string())
            .replace("@LAST@", &(count - 1).to_string())
            .replace("@EXTENSION@", &plan.recipe.format);
        let path = plan.folder.join(name);
        std::fs::write(&path, text).or_io(|| format!("cannot write {path:?}"))?;
        Ok(path)
    }
}
