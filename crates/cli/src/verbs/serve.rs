//! `packfs serve`: an image as a read-only site.

use crate::args::ImageInput;
use crate::out::{Outcome, json, report};
use crate::verbs::ls::Entry;
use packfs::{OpenOptions, ResultExt};
use packfs_serve::{Server, SiteOptions};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

/// Serve the files of an image by HTTP, read-only, until Ctrl-C
///
/// Directories are pages, or JSON (?json, or Accept: application/json) with the entries of
/// packfs ls --json. Files have ranges and entity tags. Symbolic links are followed inside the
/// image. The address is printed when requests are answered.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    #[command(flatten)]
    input: ImageInput,

    /// Listen on ADDRESS, or ADDRESS:PORT
    ///
    /// The default is reachable from this machine only. There is no encryption and no password: any
    /// other address shows every file of the image to all who reach it. Port 0 is any free port.
    #[arg(short, long, value_name = "ADDRESS", default_value = "127.0.0.1:8000", value_parser = parse_address)]
    listen: SocketAddr,
}

const EXAMPLES: &str = "\
Examples:
  packfs serve root.sqfs                       http://127.0.0.1:8000/
  packfs serve root.sqfs -l 127.0.0.1:0        any free port
  packfs serve s3://bucket/data.erofs --listen 0.0.0.0:8080
  curl -r 0-99 http://127.0.0.1:8000/etc/os-release
  curl 'http://127.0.0.1:8000/usr/?json' | jq '.[].path'";

/// Port if only an address is given.
const PORT: u16 = 8000;

impl Opts {
    /// Serves.
    pub fn run(self) -> Outcome {
        let server = Server::bind(self.listen).map_err(|error| match self.listen.port() {
            0 => error,
            _ => error.hint("--listen 127.0.0.1:0 takes any free port"),
        })?;
        let (stopper, address) = (server.stopper(), server.address());
        let cannot = || "cannot handle signals";
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP]).or_io(cannot)?;
        let opened = self.input.open_reaching(0, packfs_sandbox::Sandbox::serves)?;
        std::thread::spawn(move || {
            for (index, signal) in signals.forever().enumerate() {
                stopper.stop();
                if index > 0 {
                    std::process::exit(128 + signal);
                }
            }
        });
        let shown = self.input.shown();
        let title = Path::new(&*shown).file_name().map_or(shown.clone(), |name| name.to_string_lossy());
        let site = SiteOptions {
            title: title.into_owned(),
            identity: identity(&self.input, &self.input.options(0)?),
            json_of: |row| json::line(&Entry::new(row)).unwrap_or_else(|_| "null".into()),
            on_fault: Box::new(|error| report::warning(&error.to_string())),
        };
        let mut out = report::Out::stdout();
        out.line(format_args!("http://{address}/ serves {}", packfs::printable(&shown)))?;
        out.finish()?;
        server.run(opened.shared(), site)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn parse_address(text: &str) -> std::result::Result<SocketAddr, String> {
    let host = |text: &str| match text {
        "localhost" => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        _ => text.trim_start_matches('[').trim_end_matches(']').parse().ok(),
    };
    let with_port = || {
        let (name, port) = text.rsplit_once(':')?;
        Some(SocketAddr::new(host(name)?, port.parse().ok()?))
    };
    let alone = || Some(SocketAddr::new(host(text)?, PORT));
    alone()
        .or_else(with_port)
        .ok_or_else(|| "expected an address such as 127.0.0.1, 0.0.0.0:8080 or [::1]:8000".into())
}

/// Returns a number that differs for images with different bytes: of what the filesystem tells of
/// their files. Objects at URLs may change without a trace here, so theirs lasts for one run only.
fn identity(input: &ImageInput, options: &OpenOptions) -> u64 {
    let mut hasher = DefaultHasher::new();
    input.opening.iter().for_each(|option| option.hash(&mut hasher));
    for path in [&input.image].into_iter().chain(options.devices()) {
        match std::fs::metadata(path) {
            Ok(file) => {
                (file.dev(), file.ino(), file.size(), file.mtime(), file.mtime_nsec()).hash(&mut hasher);
            }
            Err(_) => (SystemTime::now(), std::process::id()).hash(&mut hasher),
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_may_lack_a_port() {
        for (text, expected) in [
            ("127.0.0.1", "127.0.0.1:8000"),
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("localhost:80", "127.0.0.1:80"),
            ("::1", "[::1]:8000"),
            ("[::1]:90", "[::1]:90"),
            ("0.0.0.0:8080", "0.0.0.0:8080"),
        ] {
            assert_eq!(parse_address(text).unwrap().to_string(), expected, "{text}");
        }
        for text in ["", "8000", "example.org:80", "127.0.0.1:99999", "127.0.0.1:"] {
            assert!(parse_address(text).unwrap_err().contains("0.0.0.0:8080"), "{text}");
        }
    }
}
