//! Requests that no answer came to.

use crate::failure::Failure;
use packfs_core::Error;
use rustix::io::Errno;
use rustls::{CertificateError, InvalidMessage};
use std::io::{self, ErrorKind};

/// Cause of a missing answer. The words hold no URL, and so no secret.
#[derive(Clone, Debug)]
pub(crate) struct NoAnswer {
    pub(crate) words: String,
    pub(crate) cause: Cause,
    /// Number of the system's error, if it was one.
    pub(crate) errno: Option<Errno>,
}

/// Prospects of another attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It may succeed.
    Passing,
    /// It may succeed if there is a server: nothing was reached.
    Unreached,
    /// It cannot succeed; advice.
    Lasting(&'static str),
}

impl NoAnswer {
    fn new(words: impl Into<String>, cause: Cause) -> Self {
        NoAnswer { words: words.into(), cause, errno: None }
    }

    pub(crate) fn passing(words: impl Into<String>) -> Self {
        NoAnswer::new(words, Cause::Passing)
    }

    /// The bytes of an answer ended by an error of the client.
    pub(crate) fn broken_off(error: &io::Error) -> Self {
        let is_late = error.kind() == ErrorKind::TimedOut;
        let errno = Errno::from_io_error(error).or(is_late.then_some(Errno::TIMEDOUT));
        NoAnswer { errno, ..NoAnswer::passing(format!("the answer breaks off: {}", error.kind())) }
    }

    /// Puts an error of the client in words. Its own words may contain the URL.
    pub(crate) fn of(error: &ureq::Error) -> Self {
        match error {
            ureq::Error::Io(error) => NoAnswer::of_io(error),
            ureq::Error::Timeout(limit) => NoAnswer {
                errno: Some(Errno::TIMEDOUT),
                ..NoAnswer::passing(format!("no answer in time ({limit:?})"))
            },
            ureq::Error::HostNotFound => NoAnswer::new("the host is not known", Cause::Unreached),
            ureq::Error::ConnectionFailed => NoAnswer::new("no connection", Cause::Unreached),
            ureq::Error::Rustls(error) => NoAnswer::of_tls(error),
            ureq::Error::Tls(what) => NoAnswer::passing(format!("TLS: {what}")),
            ureq::Error::ConnectProxyFailed(_) => {
                NoAnswer::new("the proxy refuses the connection", Cause::Unreached)
            }
            ureq::Error::BadUri(_) => NoAnswer::passing("the URL is wrong"),
            _ => NoAnswer::passing("the answer is no HTTP"),
        }
    }

    fn of_io(error: &io::Error) -> Self {
        if let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            return NoAnswer::of_tls(error);
        }
        let words = error.to_string();
        // The library of C has no kind for it.
        let is_unknown =
            words.starts_with("failed to lookup address information") && !words.contains("Temporary failure");
        let is_unreached = matches!(
            error.kind(),
            ErrorKind::ConnectionRefused | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable
        );
        let cause = if is_unknown || is_unreached { Cause::Unreached } else { Cause::Passing };
        NoAnswer { errno: Errno::from_io_error(error), ..NoAnswer::new(words, cause) }
    }

    fn of_tls(error: &rustls::Error) -> Self {
        const AUTHORITY: &str =
            "SSL_CERT_FILE names a file (PEM) with certificates of authorities, instead of those of Mozilla";
        const OWN: &str = "a server needs a certificate with basicConstraints=CA:FALSE; SSL_CERT_FILE may then name \
             this one, or the one of the authority that signed it";
        const PLAIN: &str = "http:// is for servers without TLS";
        let (words, advice) = match error {
            rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
                ("no authority that is trusted has signed the certificate of the server".into(), AUTHORITY)
            }
            // The other case of this kind has no name in rustls.
            rustls::Error::InvalidCertificate(CertificateError::Other(other))
                if other.to_string().contains("CaUsedAsEndEntity") =>
            {
                ("the certificate of the server is that of an authority".into(), OWN)
            }
            rustls::Error::InvalidCertificate(_) => (
                error.to_string(),
                "the host in the URL has to be a name in the certificate, and the clock right",
            ),
            rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
                ("the server does not answer by TLS at this port".into(), PLAIN)
            }
            _ => return NoAnswer::passing(format!("TLS: {error}")),
        };
        NoAnswer::new(words, Cause::Lasting(advice))
    }

    /// Returns the failure of an attempt; `what` could not be done.
    pub(crate) fn failure(self, what: &str) -> Failure {
        match self.cause {
            Cause::Passing => {
                Failure::Temporary { words: self.words, wait: None, has_progressed: false, errno: self.errno }
            }
            Cause::Unreached => Failure::Unreached { words: self.words, errno: self.errno },
            Cause::Lasting(advice) => {
                let error = Error::failed(format!("{what}: {}", self.words));
                Failure::Final(error.hint(advice))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_tls(error: rustls::Error) -> NoAnswer {
        NoAnswer::of(&ureq::Error::Io(io::Error::new(ErrorKind::InvalidData, error)))
    }

    #[test]
    fn certificates_that_are_refused_are_not_requested_again() {
        let found = of_tls(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer));
        assert!(
            matches!(found.cause, Cause::Lasting(advice) if advice.contains("SSL_CERT_FILE")),
            "{found:?}"
        );
        let found = of_tls(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType));
        assert!(matches!(found.cause, Cause::Lasting(advice) if advice.contains("http://")), "{found:?}");
        let found = of_tls(rustls::Error::DecryptError);
        assert_eq!(found.cause, Cause::Passing, "a line that damages bytes may not do so again");
    }

    #[test]
    fn servers_that_are_not_there_are_told_from_those_that_fail() {
        let of = |kind: ErrorKind| NoAnswer::of(&ureq::Error::Io(kind.into())).cause;
        assert_eq!(of(ErrorKind::ConnectionRefused), Cause::Unreached);
        assert_eq!(of(ErrorKind::ConnectionReset), Cause::Passing);
        let lookup = |why: &str| {
            let words = format!("failed to lookup address information: {why}");
            NoAnswer::of(&ureq::Error::Io(io::Error::other(words))).cause
        };
        assert_eq!(lookup("Name or service not known"), Cause::Unreached);
        assert_eq!(lookup("Temporary failure in name resolution"), Cause::Passing);
    }
}
