//! Errors in one line, where there is no room for more.

use packfs::Error;

/// An error and its hints: `there is no device "floppy"; disk and memory are the machine's own`.
pub fn told(error: &Error) -> String {
    [&[error.to_string()], error.hints()].concat().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_stand_behind_the_error() {
        assert_eq!(told(&Error::failed("it fails")), "it fails");
        assert_eq!(
            told(&Error::failed("it fails").hint("do this").hint("or that")),
            "it fails; do this; or that"
        );
    }
}
