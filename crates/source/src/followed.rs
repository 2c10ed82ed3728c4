//! Symbolic links on the way to the target of a hard link, followed within the root of the image,
//! as containerd and umoci do.

use packfs_core::{ImagePath, Name};

/// Most symbolic links of a path, as in containerd and umoci.
const LINKS_MAX: usize = 255;
/// Most names of a path, including those of symbolic links.
const NAMES_MAX: usize = 4096;

pub(crate) enum Step<D> {
    Dir(D),
    Symlink(Vec<u8>),
    /// Anything else, or nothing.
    Other,
}

/// Links are followed up to the directory of `path`, from `root` if they are absolute, and never
/// leave it. The last name is not followed: a hard link may lead to a symbolic link. Returns the
/// path, and the directory if it exists; `None` if there are too many links.
pub(crate) fn followed<D: Clone>(
    path: &ImagePath,
    root: D,
    step: impl Fn(&D, &[u8]) -> Step<D>,
) -> Option<(ImagePath, Option<D>)> {
    let last = path.file_name()?;
    let mut rest: Vec<Vec<u8>> = path.names().map(|name| name.as_bytes().to_vec()).collect();
    rest.pop();
    rest.reverse();
    let (mut at, mut dirs) = (ImagePath::root(), vec![Some(root)]);
    let (mut names, mut links) = (0, 0);
    while let Some(name) = rest.pop() {
        names += 1;
        if names + rest.len() > NAMES_MAX {
            return None;
        }
        let dir = match &name[..] {
            b"" | b"." => continue,
            b".." => {
                at.pop();
                dirs.truncate(dirs.len().saturating_sub(1).max(1));
                continue;
            }
            name => match dirs.last().and_then(Option::as_ref).map_or(Step::Other, |dir| step(dir, name)) {
                Step::Dir(dir) => Some(dir),
                Step::Other => None,
                Step::Symlink(target) => {
                    links += 1;
                    if links > LINKS_MAX {
                        return None;
                    }
                    if target.starts_with(b"/") {
                        at = ImagePath::root();
                        dirs.truncate(1);
                    }
                    let parts = target.split(|&byte| byte == b'/').rev();
                    rest.extend(parts.take(NAMES_MAX + 1).map(<[u8]>::to_vec));
                    continue;
                }
            },
        };
        at.push(Name::new(&name).ok()?);
        dirs.push(dir);
    }
    at.push(last);
    Some((at, dirs.pop().flatten()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Follows a path among directories, and symbolic links as `NAME>TARGET`.
    fn follow(path: &str, tree: &[&str]) -> Option<String> {
        let parse = |path: &str| ImagePath::parse(path.as_bytes()).unwrap();
        let step = |dir: &ImagePath, name: &[u8]| {
            let path = dir.join(Name::new(name).unwrap());
            let links = tree.iter().filter_map(|line| line.split_once('>'));
            match links.into_iter().find(|(name, _)| parse(name) == path) {
                Some((_, target)) => Step::Symlink(target.into()),
                None if tree.iter().any(|line| !line.contains('>') && parse(line) == path) => Step::Dir(path),
                None => Step::Other,
            }
        };
        let (path, dir) = followed(&parse(path), ImagePath::root(), step)?;
        Some(format!("{path}{}", if dir.is_some() { "" } else { "?" }))
    }

    #[test]
    fn links_are_followed_within_the_root() {
        let tree = [
            "usr",
            "usr/lib",
            "lib>usr/lib",
            "usr/up>../..",
            "usr/abs>/usr//./lib",
            "l2>/lib",
            "loop>loop/loop",
        ];
        let follow = |path| follow(path, &tree);
        for (path, found) in [
            ("a", "a"),
            ("lib", "lib"),
            ("usr/lib/a", "usr/lib/a"),
            ("lib/a", "usr/lib/a"),
            ("l2/a", "usr/lib/a"),
            ("usr/abs/a", "usr/lib/a"),
            ("usr/up/usr/up/a", "a"),
            ("usr/up/lib/abs", "usr/lib/abs"),
            ("lib/none/a", "usr/lib/none/a?"),
        ] {
            assert_eq!(follow(path).as_deref(), Some(found), "{path}");
        }
        assert_eq!(follow("loop/a"), None);
        assert_eq!(follow(&"usr/up/".repeat(300)), None);
    }

    #[test]
    fn long_ways_end() {
        let long = format!("d>{}", "d/".repeat(5000));
        assert_eq!(follow("d/a", &[&long]), None);
        let wide = format!("d>{}", "./".repeat(5000));
        assert_eq!(follow("d/a", &[&wide]), None);
    }
}
