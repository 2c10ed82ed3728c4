//! Words of the files that gensquashfs reads.

/// Splits a line at blanks outside quotes. A pattern of `glob` may also be in single quotes, and
/// has no escapes in either kind: a backslash is a part of it.
pub fn words(line: &[u8]) -> Vec<Vec<u8>> {
    let (mut words, mut word, mut is_quoted, mut is_word) = (Vec::new(), Vec::new(), false, false);
    let mut bytes = line.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' | b'\'' if !is_word && takes_pattern(&words) => {
                words.push(bytes.by_ref().take_while(|&next| next != byte).collect());
            }
            b'"' => (is_quoted, is_word) = (!is_quoted, true),
            b'\\' if is_quoted => word.extend(bytes.next()),
            byte if byte.is_ascii_whitespace() && !is_quoted => {
                if is_word {
                    words.push(std::mem::take(&mut word));
                }
                is_word = false;
            }
            byte => {
                word.push(byte);
                is_word = true;
            }
        }
    }
    if is_word {
        words.push(word);
    }
    words
}

/// Returns true if the next word of a line is a pattern of `glob`.
fn takes_pattern(words: &[Vec<u8>]) -> bool {
    let is_option = |word: &Vec<u8>| word == b"-name" || word == b"-path";
    words.first().is_some_and(|first| first == b"glob") && words.last().is_some_and(is_option)
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn words_may_be_quoted() {
        assert_eq!(words(br#"file "/a \"b\" c"  0644 0"#), [&b"file"[..], br#"/a "b" c"#, b"0644", b"0"]);
        assert_eq!(
            words(br"glob -name '?.\a b' -path 'x"),
            [&b"glob"[..], b"-name", br"?.\a b", b"-path", b"x"]
        );
        assert_eq!(words(b"dir 'a b'"), [&b"dir"[..], b"'a", b"b'"]);
    }
}
