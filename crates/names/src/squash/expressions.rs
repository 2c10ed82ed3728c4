//! The language of mksquashfs's actions: `ACTION(ARGUMENTS)@EXPRESSION`.

use crate::common::globs::regex;
use crate::common::users::Ids;
use packfs::source::ModeChange;
use packfs::{Error, FileType, Result};
use regex::bytes::Regex;

/// Most expressions inside expressions.
const DEPTH_MAX: u32 = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Open,
    Close,
    And,
    Or,
    Not,
    Comma,
    At,
    Word(String),
}

const SIGNS: [(&str, Token); 7] = [
    ("(", Token::Open),
    (")", Token::Close),
    ("&&", Token::And),
    ("||", Token::Or),
    ("!", Token::Not),
    (",", Token::Comma),
    ("@", Token::At),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    Less(u64),
    Equal(u64),
    More(u64),
    Between(u64, u64),
}

impl Range {
    pub fn has(self, number: u64) -> bool {
        match self {
            Range::Less(limit) => number < limit,
            Range::Equal(limit) => number == limit,
            Range::More(limit) => number > limit,
            Range::Between(least, most) => (least..=most).contains(&number),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    FileSize,
    TailSize,
    DirSize,
    Size,
    Inode,
    Links,
    FileBlocks,
    DirBlocks,
    Blocks,
    Gid,
    Uid,
    Depth,
    Entries,
}

const FIGURES: [(&str, Figure); 13] = [
    ("filesize", Figure::FileSize),
    ("tailsize", Figure::TailSize),
    ("dirsize", Figure::DirSize),
    ("size", Figure::Size),
    ("inode", Figure::Inode),
    ("nlink", Figure::Links),
    ("fileblocks", Figure::FileBlocks),
    ("dirblocks", Figure::DirBlocks),
    ("blocks", Figure::Blocks),
    ("gid", Figure::Gid),
    ("uid", Figure::Uid),
    ("depth", Figure::Depth),
    ("dircount", Figure::Entries),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permissions {
    Exactly(u16),
    All(u16),
    Any(u16),
}

#[derive(Clone, Debug)]
pub enum Expression {
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
    Not(Box<Expression>),
    True,
    False,
    Name(String),
    Path(String),
    PathStart(String),
    Number(Figure, Range),
    Type(FileType),
    Permissions(Permissions),
    /// The target of a symbolic link exists in the image.
    Exists,
    /// The target of a symbolic link is absolute.
    Absolute,
    /// Condition of a symbolic link's target.
    AtTarget(Box<Expression>),
    /// Condition of the file at a path.
    AtPath(String, Box<Expression>),
    /// Condition with the metadata of a symbolic link's target on this machine.
    AtHost(Box<Expression>),
    /// Matches the description of the program `file`.
    File(Regex),
    /// A shell command succeeds.
    Program(String),
}

#[derive(Debug)]
pub struct Typed {
    pub name: String,
    pub arguments: Vec<String>,
    pub expression: Expression,
}

pub struct Names<'a> {
    pub users: &'a Ids,
    pub groups: &'a Ids,
}

pub fn parse(text: &str, names: &Names<'_>) -> Result<Typed> {
    let mut parser = Parser::new(text, names, 0)?;
    let Some(Token::Word(name)) = parser.next() else { return Err(parser.wrong("an action")) };
    let arguments = parser.arguments()?;
    if parser.next() != Some(Token::At) {
        return Err(parser.wrong("\"@\""));
    }
    parser.excludes = name == "exclude";
    let expression = parser.expression(false)?;
    Ok(Typed { name, arguments, expression })
}

struct Parser<'a> {
    text: &'a str,
    names: &'a Names<'a>,
    tokens: std::iter::Peekable<std::vec::IntoIter<Token>>,
    /// Set if no tree exists yet.
    excludes: bool,
    depth: u32,
}

fn tokens(text: &str) -> Option<Vec<Token>> {
    let (mut found, mut rest) = (Vec::new(), text);
    loop {
        rest = rest.trim_start_matches([' ', '\t']);
        if rest.is_empty() {
            return Some(found);
        }
        if let Some((sign, token)) = SIGNS.iter().find(|(sign, _)| rest.starts_with(sign)) {
            found.push(token.clone());
            rest = &rest[sign.len()..];
            continue;
        }
        let (mut word, mut is_quoted) = (String::new(), false);
        while let Some(letter) = rest.chars().next() {
            let is_end =
                SIGNS.iter().any(|(sign, _)| rest.starts_with(sign)) || letter == ' ' || letter == '\t';
            if is_end && !is_quoted {
                break;
            }
            rest = &rest[letter.len_utf8()..];
            match letter {
                '"' => is_quoted = !is_quoted,
                '\\' => {
                    let escaped = rest.chars().next()?;
                    rest = &rest[escaped.len_utf8()..];
                    word.push(escaped);
                }
                letter => word.push(letter),
            }
        }
        if is_quoted {
            return None;
        }
        found.push(Token::Word(word));
    }
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, names: &'a Names<'a>, depth: u32) -> Result<Self> {
        let wrong = || Error::usage(format!("invalid action \"{text}\": a quote or a backslash has no end"));
        let tokens = tokens(text).ok_or_else(wrong)?.into_iter().peekable();
        Ok(Parser { text, names, tokens, excludes: false, depth })
    }

    fn next(&mut self) -> Option<Token> {
        self.tokens.next()
    }

    fn wrong(&self, expected: &str) -> Error {
        Error::usage(format!("invalid action \"{}\": expected {expected}", self.text))
    }

    fn arguments(&mut self) -> Result<Vec<String>> {
        let mut arguments = Vec::new();
        if self.tokens.next_if_eq(&Token::Open).is_none() || self.tokens.next_if_eq(&Token::Close).is_some() {
            return Ok(arguments);
        }
        loop {
            let Some(Token::Word(word)) = self.next() else { return Err(self.wrong("an argument")) };
            arguments.push(word);
            match self.next() {
                Some(Token::Close) => return Ok(arguments),
                Some(Token::Comma) => {}
                _ => return Err(self.wrong("\",\" or \")\"")),
            }
        }
    }

    /// Operators have no precedence. Ends at a bracket or the end.
    fn expression(&mut self, is_inner: bool) -> Result<Expression> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.wrong("fewer brackets"));
        }
        let mut left = self.atom()?;
        loop {
            left = match self.next() {
                None if !is_inner => break,
                Some(Token::Close) if is_inner => break,
                Some(Token::And) => Expression::And(Box::new(left), Box::new(self.atom()?)),
                Some(Token::Or) => Expression::Or(Box::new(left), Box::new(self.atom()?)),
                _ => return Err(self.wrong(if is_inner { "&&, || or )" } else { "&& or ||" })),
            };
        }
        self.depth -= 1;
        Ok(left)
    }

    fn atom(&mut self) -> Result<Expression> {
        let mut is_negated = false;
        while self.tokens.next_if_eq(&Token::Not).is_some() {
            is_negated = !is_negated;
        }
        let found = match self.next() {
            Some(Token::Open) => self.expression(true)?,
            Some(Token::Word(name)) => self.test(&name)?,
            _ => return Err(self.wrong("a test, ! or (")),
        };
        Ok(if is_negated { Expression::Not(Box::new(found)) } else { found })
    }

    fn test(&mut self, name: &str) -> Result<Expression> {
        let late = ["dircount", "dircount_range", "exists", "absolute", "readlink", "eval"];
        if self.excludes && late.contains(&name) {
            let error = Error::usage(format!("test \"{name}\" cannot be used in exclude actions"));
            return Err(error.hint("use prune"));
        }
        let arguments = self.arguments()?;
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        if let Some(found) = self.number(name, &words)? {
            return Ok(found);
        }
        Ok(match (name, &words[..]) {
            ("name", [glob]) => Expression::Name((*glob).to_owned()),
            ("pathname", [glob]) => Expression::Path((*glob).to_owned()),
            ("subpathname", [glob]) => Expression::PathStart((*glob).to_owned()),
            ("user", [name]) => {
                Expression::Number(Figure::Uid, Range::Equal(self.names.users.id(name)?.into()))
            }
            ("group", [name]) => {
                Expression::Number(Figure::Gid, Range::Equal(self.names.groups.id(name)?.into()))
            }
            ("type", [letter]) => Expression::Type(self.file_type(letter)?),
            ("true", []) => Expression::True,
            ("false", []) => Expression::False,
            ("exists", []) => Expression::Exists,
            ("absolute", []) => Expression::Absolute,
            ("readlink", [inner]) => Expression::AtTarget(Box::new(self.inner(inner)?)),
            ("eval", [path, inner]) => Expression::AtPath((*path).to_owned(), Box::new(self.inner(inner)?)),
            ("perm", [_, ..]) => Expression::Permissions(permissions(&words.join(","))?),
            ("stat", [inner]) => Expression::AtHost(Box::new(self.inner(inner)?)),
            ("file", [text]) => Expression::File(regex(text.as_bytes())?),
            ("exec", [command]) => Expression::Program((*command).to_owned()),
            _ => return Err(Error::usage(format!("no test \"{name}\" with {} arguments", words.len()))),
        })
    }

    fn number(&self, name: &str, words: &[&str]) -> Result<Option<Expression>> {
        let find = |name: &str| FIGURES.iter().find(|(own, _)| *own == name).map(|(_, figure)| *figure);
        let wrong = || Error::usage(format!("test \"{name}\": \"{}\" is no number", words.join(",")));
        let range = match (find(name), name.strip_suffix("_range").and_then(find), words) {
            (Some(figure), _, [word]) => (figure, compared(word).ok_or_else(wrong)?),
            (_, Some(figure), [least, most]) => {
                let (least, most) = (whole(least).ok_or_else(wrong)?, whole(most).ok_or_else(wrong)?);
                (figure, Range::Between(least, most))
            }
            _ => return Ok(None),
        };
        Ok(Some(Expression::Number(range.0, range.1)))
    }

    fn file_type(&self, letter: &str) -> Result<FileType> {
        Ok(match letter {
            "f" => FileType::File,
            "d" => FileType::Directory,
            "l" => FileType::Symlink,
            "c" => FileType::CharDevice,
            "b" => FileType::BlockDevice,
            "p" => FileType::Fifo,
            "s" => FileType::Socket,
            _ => return Err(self.wrong("a type: f, d, l, c, b, p or s")),
        })
    }

    fn inner(&self, text: &str) -> Result<Expression> {
        Parser::new(text, self.names, self.depth)?.expression(false)
    }
}

fn permissions(text: &str) -> Result<Permissions> {
    let mode = |text: &str| Ok::<_, Error>(text.parse::<ModeChange>()?.apply(0, false));
    Ok(match text.as_bytes().first() {
        Some(b'-') => Permissions::All(mode(&text[1..])?),
        Some(b'/') => Permissions::Any(mode(&text[1..])?),
        _ => Permissions::Exactly(mode(text)?),
    })
}

fn whole(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "k" | "K" => 10,
        "m" | "M" => 20,
        "g" | "G" => 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

fn compared(text: &str) -> Option<Range> {
    Some(if let Some(rest) = text.strip_prefix("<=") {
        Range::Between(0, whole(rest)?)
    } else if let Some(rest) = text.strip_prefix(">=") {
        Range::Between(whole(rest)?, u64::MAX)
    } else if let Some(rest) = text.strip_prefix(['<', '-']) {
        Range::Less(whole(rest)?)
    } else if let Some(rest) = text.strip_prefix(['>', '+']) {
        Range::More(whole(rest)?)
    } else {
        Range::Equal(whole(text)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Typed> {
        let (users, groups) = (Ids::default(), Ids::default());
        parse(text, &Names { users: &users, groups: &groups })
    }

    #[test]
    fn actions_have_arguments_and_an_expression() {
        let typed = parsed("guid(0, 5)@name(\"a b\") && !(type(f) || depth(>3))").unwrap();
        assert_eq!((typed.name.as_str(), typed.arguments), ("guid", vec!["0".to_owned(), "5".to_owned()]));
        let shown = format!("{:?}", typed.expression);
        let expected = "And(Name(\"a b\"), Not(Or(Type(File), Number(Depth, More(3)))))";
        assert_eq!(shown, expected);
    }

    #[test]
    fn numbers_have_signs_and_suffixes() {
        assert_eq!(compared("<=80K"), Some(Range::Between(0, 80 << 10)));
        assert_eq!(compared("+1m"), Some(Range::More(1 << 20)));
        assert_eq!(compared("7"), Some(Range::Equal(7)));
        assert_eq!(compared("x"), None);
    }

    #[test]
    fn what_is_no_action_is_refused() {
        for text in [
            "exclude",
            "exclude@",
            "exclude@name(a",
            "exclude@name()",
            "exclude@none(a)",
            "exclude@name(a) name(b)",
            "exclude@name(a))",
            "exclude@exists",
            "prune@type(x)",
            "prune@size(many)",
            "prune@\"a",
            "prune@file(()",
            "prune@exec",
        ] {
            assert!(parsed(text).is_err(), "{text}");
        }
        assert!(parsed(&format!("prune@{}true", "(".repeat(10_000))).is_err());
    }
}
