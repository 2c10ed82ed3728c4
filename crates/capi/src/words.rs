//! Messages and advice of the library, which name options of the command line, in words of C.

/// Options of the command line, and what a program in C has for them; longer ones first.
const WORDS: [(&str, &str); 7] = [
    ("--ignore-checksum", "the flag PACKFS_IGNORE_CHECKSUM"),
    ("--ignore-log (or --no-journal)", "the flag PACKFS_NO_JOURNAL"),
    ("--ignore-log", "the flag PACKFS_NO_JOURNAL"),
    ("--partition-table", "the option partition_table"),
    ("--offset", "the option offset"),
    ("--device", "the option devices"),
    ("--part", "the option part"),
];

/// Returns a text in words of C, without the parts that only help at the command line; `None` if
/// nothing is left.
pub fn worded(text: &str) -> Option<String> {
    let kept: Vec<String> = text.split("; ").filter_map(in_words).collect();
    (!kept.is_empty()).then(|| kept.join("; "))
}

fn in_words(part: &str) -> Option<String> {
    // What follows is the command with the same option.
    let part = part.split(", as in packfs ").next().unwrap_or(part);
    let mut kept: Vec<String> = part.split('"').map(str::to_owned).collect();
    // Each second piece is a name, in quotes.
    for piece in kept.iter_mut().step_by(2) {
        *piece =
            WORDS.iter().fold(std::mem::take(piece), |piece, (option, word)| piece.replace(option, word));
    }
    (!kept.iter().step_by(2).any(|piece| piece.contains("--"))).then(|| kept.join("\""))
}

/// Returns a message in words of C, or as it is if nothing would be left.
pub fn in_c(message: &str) -> String {
    worded(message).unwrap_or_else(|| message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_for_the_command_line_is_reworded_or_left_out() {
        let found = |text| worded(text).unwrap_or_default();
        assert_eq!(
            found("--ignore-log (or --no-journal) reads it; --ignore-checksum too"),
            "the flag PACKFS_NO_JOURNAL reads it; the flag PACKFS_IGNORE_CHECKSUM too"
        );
        assert_eq!(
            found("p1 is shown; --part NAME chooses one"),
            "p1 is shown; the option part NAME chooses one"
        );
        assert_eq!(
            found("--offset 64 reads it, as in packfs ls FILE --offset 64"),
            "the option offset 64 reads it"
        );
        assert_eq!(worded("packfs info --scan FILE searches it"), None);
        assert_eq!(in_c("did you mean \"a--b\"?"), "did you mean \"a--b\"?");
    }
}
