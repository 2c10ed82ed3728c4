//! `cargo xtask`: development tasks of the project, one file for each verb.
//!
//! The tool runs packfs but never imports it, so it builds in seconds even if the product crates do
//! not compile.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program of developers")]

mod api;
mod capi;
mod changelog;
mod ci;
mod corpus;
mod coverage;
mod debian;
mod dist;
mod failure;
mod fidelity;
mod flows;
mod fuzz;
mod instructions;
mod kernels;
mod licenses;
mod matrix;
mod metadata;
mod mutate;
mod peers;
mod publish;
mod python;
mod shell;
mod suites;
mod table;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::Parser;

/// Development tasks of packfs
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    Ci(ci::Options),
    Tidy(tidy::Options),
    CheckLicenses(licenses::Options),
    Peers(peers::Options),
    Kernels(kernels::Options),
    Python(python::Options),
    Capi(capi::Options),
    Dist(dist::Options),
    Api(api::Options),
    Publish(publish::Options),
    Suites(suites::Options),
    Flows(flows::Options),
    Changelog(changelog::Options),
    Corpus(corpus::Options),
    Matrix(matrix::Options),
    Fidelity(fidelity::Options),
    Mutate(mutate::Options),
    Fuzz(fuzz::Options),
    Instructions(instructions::Options),
    Coverage(coverage::Options),
}

fn main() -> ExitCode {
    let outcome = match Task::parse() {
        Task::Ci(options) => ci::run(options),
        Task::Tidy(options) => tidy::run(options),
        Task::CheckLicenses(options) => licenses::run(options),
        Task::Peers(options) => peers::run(options),
        Task::Kernels(options) => kernels::run(options),
        Task::Python(options) => python::run(options),
        Task::Capi(options) => capi::run(options),
        Task::Dist(options) => dist::run(options),
        Task::Api(options) => api::run(options),
        Task::Publish(options) => publish::run(options),
        Task::Suites(options) => suites::run(options),
        Task::Flows(options) => flows::run(options),
        Task::Changelog(options) => changelog::run(options),
        Task::Corpus(options) => corpus::run(options),
        Task::Matrix(options) => matrix::run(options),
        Task::Fidelity(options) => fidelity::run(options),
        Task::Mutate(options) => mutate::run(options),
        Task::Fuzz(options) => fuzz::run(options),
        Task::Instructions(options) => instructions::run(options),
        Task::Coverage(options) => coverage::run(options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            failure.exit_code()
        }
    }
}
