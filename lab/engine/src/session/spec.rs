//! Recipes as users type them: `packfs:squashfs:zstd:15:128K`,
//! `mkfs.erofs:erofs:lz4hc:12:64K+-Efragments`, `mkfs.btrfs:btrfs:zstd:1+luks`.

use packfs::{Error, Result};

use crate::results::Recipe;

/// Reads `MAKER:FORMAT[:CODEC[:LEVEL][:BLOCK]][+OPTION...]`. A block is a number with K or M, or
/// one of 512 and more; the word `luks` among options asks for LUKS below. Whether there is such a
/// maker, and what it can, is for the maker to say.
///
/// Errors: `Usage`, with what is allowed.
pub fn parse_recipe(text: &str) -> Result<Recipe> {
    let refuse = |why: String| {
        Error::usage(format!("{text:?} is no subject: {why}")).hint(
            "write MAKER:FORMAT[:CODEC[:LEVEL][:BLOCK]][+OPTION...], such as packfs:squashfs:zstd:15:128K",
        )
    };
    let (front, options) = text.split_once('+').map_or((text, None), |(front, rest)| (front, Some(rest)));
    let mut words = front.split(':');
    let mut recipe = Recipe { codec: "none".into(), ..Recipe::default() };
    recipe.maker = words.next().unwrap_or_default().to_owned();
    recipe.format = words.next().unwrap_or_default().to_owned();
    if recipe.maker.is_empty() || recipe.format.is_empty() {
        return Err(refuse("it names a maker and a format at least".into()));
    }
    if let Some(codec) = words.next().filter(|codec| !codec.is_empty()) {
        recipe.codec = codec.to_owned();
    }
    for word in words.filter(|word| !word.is_empty()) {
        match (block_len(word), word.parse::<i32>()) {
            (Some(len), _) if recipe.block_len.is_none() => recipe.block_len = Some(len),
            (None, Ok(level)) if recipe.level.is_none() && recipe.block_len.is_none() => {
                recipe.level = Some(level);
            }
            _ => return Err(refuse(format!("{word:?} is neither a level nor a block behind one"))),
        }
    }
    for option in options.into_iter().flat_map(|options| options.split('+')) {
        match option {
            "" => return Err(refuse("an option is empty".into())),
            "luks" => recipe.luks = true,
            // Words of one option stand with blanks between them: `+-O fragments=off`.
            _ => recipe.options.extend(option.split(' ').map(str::to_owned)),
        }
    }
    Ok(recipe)
}

/// The tree of a word such as `IMAGE(debian)` among options, which stands for the image of that
/// tree by the same recipe without this word and the option before it; none of any other word.
pub fn earlier_tree(word: &str) -> Option<&str> {
    word.strip_prefix("IMAGE(")?.strip_suffix(')')
}

/// `128K`, `1M`, or bytes from 512 on.
fn block_len(word: &str) -> Option<u32> {
    let (digits, shift) = match word.char_indices().next_back() {
        Some((end, 'K' | 'k')) => (&word[..end], 10),
        Some((end, 'M' | 'm')) => (&word[..end], 20),
        _ => (word, 0),
    };
    let number: u32 = digits.parse().ok()?;
    let len = number.checked_mul(1 << shift)?;
    (shift > 0 || len >= 512).then_some(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_users_type() {
        let recipe = parse_recipe("packfs:squashfs:zstd:15:128K").unwrap();
        assert_eq!((&*recipe.maker, &*recipe.format, &*recipe.codec), ("packfs", "squashfs", "zstd"));
        assert_eq!((recipe.level, recipe.block_len), (Some(15), Some(128 << 10)));
        let recipe = parse_recipe("mksquashfs:squashfs:xz:4096").unwrap();
        assert_eq!((recipe.level, recipe.block_len), (None, Some(4096)));
        assert_eq!(parse_recipe("mkfs.ext4:ext4").unwrap().codec, "none");
        let recipe = parse_recipe("packfs:erofs:lz4hc:12:64K+-O fragments=off+luks").unwrap();
        assert_eq!(recipe.options, ["-O", "fragments=off"]);
        assert!(recipe.luks);
        assert_eq!(parse_recipe("packfs:squashfs:zstd::1M").unwrap().block_len, Some(1 << 20));
    }

    #[test]
    fn refuses_the_rest_with_the_grammar() {
        for text in
            ["", "packfs", ":squashfs", "packfs:squashfs:zstd:high", "a:b:c:1:2", "a:b:c:64K:64K", "a:b+"]
        {
            let error = parse_recipe(text).unwrap_err();
            assert_eq!(error.kind(), packfs::ErrorKind::Usage, "{text}");
            assert!(error.hints()[0].contains("MAKER:FORMAT"), "{text}");
        }
    }
}
