//! Remote images against a server with faults. Requests are counted, times never.

mod answers;
mod cache;
mod credentials;
mod differential;
mod downloads;
mod redirects;
mod registry;
mod registry_upload;
mod rounds;
mod s3_folder;
mod tls;

use packfs_core::{Error, Image};
use packfs_remote::{Environment, RemoteImage, RemoteOptions, Retries, TimeLimits};
use packfs_testkit::{Random, RangeServer};
use std::time::Duration;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Options without a cache on disk, credentials, and long waits.
fn options() -> RemoteOptions {
    options_with(&[])
}

fn options_with(variables: &[(&str, &str)]) -> RemoteOptions {
    let quiet = [("AWS_EC2_METADATA_DISABLED", "true")];
    RemoteOptions {
        cache_dir: None,
        retries: Retries {
            attempts: 4,
            first_wait: Duration::from_millis(1),
            longest_wait: Duration::from_millis(10),
        },
        limits: TimeLimits::within(Duration::from_secs(30)),
        ..RemoteOptions::new(Environment::of(variables.iter().copied().chain(quiet)))
    }
}

fn noise(len: usize) -> Vec<u8> {
    Random::new(len as u64).noise(len)
}

fn open(server: &RangeServer) -> Result<RemoteImage, Error> {
    RemoteImage::open(&server.url("/image"), options())
}

fn read(image: &RemoteImage, offset: usize, len: usize) -> Result<Vec<u8>, Error> {
    let mut buf = vec![0xaa; len];
    let len = image.read_at(offset as u64, &mut buf)?;
    buf.truncate(len);
    Ok(buf)
}
