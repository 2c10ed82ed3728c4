//! `packfs sign`: a signature beside an image, in minisign's format.

use crate::args::read_text;
use crate::out::Outcome;
use crate::out::report::Out;
use owo_colors::OwoColorize;
use packfs::FileImage;
use packfs::integrity::{self, Replacement, SigningKey};
use packfs::{Error, Progress, Result, ResultExt, escaped};
use packfs_terminal::work::Work;
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

/// Sign an image, or create a key pair
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// Image to sign
    #[arg(value_name = "IMAGE", required_unless_present = "new_key")]
    image: Option<PathBuf>,

    /// Read the secret key from FILE
    ///
    /// Keys of minisign are accepted, too.
    #[arg(short, long, value_name = "FILE", required_unless_present = "new_key")]
    secret_key: Option<PathBuf>,

    /// Write the signature to FILE (default: IMAGE.minisig)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Set the comment that is signed with the image
    ///
    /// `packfs verify` prints it. The default is the time and the name of the image.
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,

    /// Create a key pair: FILE and FILE.pub
    ///
    /// FILE holds the secret key, FILE.pub the public one.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["image", "secret_key", "output", "comment"])]
    new_key: Option<PathBuf>,

    /// Read the password of the secret key from FILE
    ///
    /// The first line of FILE is the password; - is standard input.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,

    /// With --new-key: do not encrypt the secret key
    #[arg(long, requires = "new_key", conflicts_with = "password_file")]
    no_password: bool,

    #[command(flatten)]
    work: Work,
}

const EXAMPLES: &str = "\
Examples:
  packfs sign --new-key release.key --password-file password
  packfs sign root.erofs --secret-key release.key --password-file password
  packfs verify root.erofs --public-key release.key.pub
  minisign -Vm root.erofs -p release.key.pub              the same, by minisign

Keys and signatures are those of minisign.";

impl Opts {
    /// Signs, or makes keys.
    pub fn run(self) -> Outcome {
        if let Some(path) = &self.new_key {
            return self.make_keys(path);
        }
        self.work.shown(false, |bars| self.sign(bars))
    }

    fn password(&self) -> Result<String> {
        let Some(path) = &self.password_file else {
            let error = Error::usage("cannot read the secret key: it is encrypted");
            return Err(error.hint("use --password-file FILE; - reads it from standard input"));
        };
        Ok(read_text(path)?.lines().next().unwrap_or_default().to_owned())
    }

    fn make_keys(&self, path: &Path) -> Outcome {
        if !self.no_password && self.password_file.is_none() {
            let error = Error::usage("cannot create a secret key without a password");
            return Err(error.hint("use --password-file FILE, or --no-password"));
        }
        let password = if self.no_password { None } else { Some(self.password()?) };
        let public = integrity::public_key_path(path);
        let keys = integrity::new_signing_keys(password)?;
        // Nothing that exists is replaced: a lost key is lost for good.
        for (path, text, mode) in [(path, &keys.secret, 0o600), (&public, &keys.public, 0o644)] {
            let cannot = || format!("cannot create {path:?}");
            let created = File::options().write(true).create_new(true).mode(mode).open(path);
            let mut file = created.or_io(cannot)?;
            file.write_all(text.as_bytes()).or_io(cannot)?;
            file.sync_all().or_io(cannot)?;
        }
        if !self.work.quiet {
            let mut out = Out::stdout();
            out.line(format_args!("{}: {path:?}; to verify with: {public:?}", "secret key".green().bold()))?;
            out.finish()?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn sign(&self, bars: &crate::out::progress::Bars) -> Outcome {
        let (Some(path), Some(key)) = (&self.image, &self.secret_key) else {
            return Err(Error::usage("an image and a secret key are needed"));
        };
        let key = SigningKey::read(&read_text(key)?, || self.password())?;
        let comment = self.comment.clone().unwrap_or_else(|| {
            let seconds =
                SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs());
            let name = path.file_name().unwrap_or_default();
            format!("timestamp:{seconds}\tfile:{}\thashed", escaped(name.as_bytes()))
        });
        let watched: &dyn Progress = bars;
        let signature = key.sign(&FileImage::open(path)?, &comment, watched)?;
        let output = self.output.clone().unwrap_or_else(|| integrity::signature_path(path));
        let out = Replacement::create(&output)?;
        out.file().write_all(signature.as_bytes()).or_io(|| format!("cannot write {output:?}"))?;
        out.finish()?;
        bars.finish();
        if !self.work.quiet {
            let mut out = Out::stdout();
            out.line(format_args!("{}: {output:?}", "signed".green().bold()))?;
            out.finish()?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
