//! Words of the files that gensquashfs reads.

/// Splits a line at blanks outside quotes.
pub fn words(line: &[u8]) -> Vec<Vec<u8>> {
    let (mut words, mut word, mut is_quoted, mut is_word) = (Vec::new(), Vec::new(), false, false);
    let mut bytes = line.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
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

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn words_may_be_quoted() {
        assert_eq!(words(br#"file "/a \"b\" c"  0644 0"#), [&b"file"[..], br#"/a "b" c"#, b"0644", b"0"]);
    }
}
