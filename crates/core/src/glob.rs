//! Globs: the one engine for patterns of names and paths. Differences between programs are a
//! [`Dialect`].
//!
//! Matching tracks the set of positions that are reachable, so alternatives add up instead of
//! multiplying: no pattern takes exponential time.

/// A byte, or a character; bytes that are not UTF-8 are numbered outside all characters.
type Unit = u32;

/// First number of bytes that are not UTF-8: the low surrogates, which text cannot contain.
const STRAY_BYTE_BASE: Unit = 0xdc00;

/// Special characters besides `*`, `?`, `[...]` and `\`, and characters that wildcards match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// `?` and sets match a character instead of a byte, if the text is UTF-8.
    pub characters: bool,
    /// Wildcards match no dot at the beginning.
    pub hides_dots: bool,
    /// Wildcards match no slash.
    pub is_of_paths: bool,
    /// `?(..)`, `*(..)`, `+(..)`, `@(..)` and `!(..)` are groups, with `|` between alternatives.
    pub groups: bool,
    /// `{..}` are groups, with `,` between alternatives, and `**` at the beginning of a name
    /// matches slashes, too.
    pub braces: bool,
}

impl Dialect {
    /// Only `*`, `?`, `[...]` and `\`, of bytes.
    pub const PLAIN: Dialect =
        Dialect { characters: false, hides_dots: false, is_of_paths: false, groups: false, braces: false };
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Item {
    /// Zero or more units that wildcards match.
    Star,
    /// Zero or more units of any kind.
    Run,
    Any,
    One(Unit),
    /// Negated sets match a unit in none of the ranges.
    Set {
        ranges: Vec<(Unit, Unit)>,
        negated: bool,
    },
    Group(usize),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Group {
    kind: u8,
    choices: Vec<Vec<Item>>,
}

/// Pattern that is matched with a whole text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    items: Vec<Item>,
    /// Inner groups precede outer ones.
    groups: Vec<Group>,
    dialect: Dialect,
    /// Literal prefix and suffix, which are fast to compare.
    ends: [Vec<u8>; 2],
    unclosed: bool,
}

/// One flag for each position of a text, and one for its end: true if reachable.
type Positions = Vec<bool>;

impl Glob {
    /// Parses a glob. An unclosed set or group is literal.
    pub fn new(text: &[u8], dialect: Dialect) -> Self {
        let mut parser = Parser { text: units(text, dialect), dialect, at: 0, unclosed: false };
        let (items, groups) = parser.items();
        let literal = |item: &Item| if let Item::One(unit) = item { Some(*unit) } else { None };
        let first = ascii(items.iter().map_while(literal));
        let mut last = ascii(items.iter().rev().map_while(literal));
        last.reverse();
        let ends = [first, last];
        Glob { items, groups, dialect, ends, unclosed: parser.unclosed }
    }

    /// Returns true if bytes contain a character that is special in every dialect.
    pub fn is_pattern(bytes: &[u8]) -> bool {
        bytes.iter().any(|byte| b"*?[\\".contains(byte))
    }

    /// Returns true if a set or group is not closed.
    pub fn is_unclosed(&self) -> bool {
        self.unclosed
    }

    /// Returns true if the whole text matches.
    pub fn is_match(&self, text: &[u8]) -> bool {
        let [first, last] = &self.ends;
        if !text.starts_with(first) || !text.ends_with(last) {
            return false;
        }
        let text = units(text, self.dialect);
        let mut ends: Vec<Vec<Positions>> = Vec::new();
        for group in &self.groups {
            let mut found = Vec::new();
            for start in (0..=text.len()).rev() {
                let of_start = self.ends(group, start, &text, (&ends, &found));
                found.push(of_start);
            }
            found.reverse();
            ends.push(found);
        }
        self.walked(&self.items, only(0, text.len()), &text, &ends).last() == Some(&true)
    }

    fn is_free(&self, text: &[Unit], at: usize) -> bool {
        let is = |at: usize, sign: u8| text.get(at) == Some(&sign.into());
        let is_hidden = self.dialect.hides_dots && at == 0 && is(0, b'.');
        !(is_hidden || self.dialect.is_of_paths && is(at, b'/'))
    }

    fn walked(&self, items: &[Item], from: Positions, text: &[Unit], ends: &[Vec<Positions>]) -> Positions {
        let mut from = from;
        for item in items {
            let Some(first) = from.iter().position(|is_reached| *is_reached) else { break };
            let mut to = vec![false; from.len()];
            let mut is_reached = false;
            for at in first..from.len() {
                let takes = |takes: bool| from[at] && takes;
                let unit = text.get(at).copied();
                is_reached |= from[at];
                match item {
                    Item::Star | Item::Run => {
                        to[at] = is_reached;
                        is_reached &= matches!(item, Item::Run) || self.is_free(text, at);
                    }
                    Item::Group(group) if from[at] => add(&mut to, &ends[*group][at]),
                    Item::Group(_) => {}
                    Item::Any => step(&mut to, at, takes(self.is_free(text, at))),
                    Item::One(own) => step(&mut to, at, takes(unit == Some(*own))),
                    Item::Set { ranges, negated } => {
                        let has =
                            |unit: Unit| ranges.iter().any(|&(first, last)| (first..=last).contains(&unit));
                        let is_in = unit.is_some_and(|unit| has(unit) != *negated);
                        step(&mut to, at, takes(is_in && self.is_free(text, at)));
                    }
                }
            }
            from = to;
        }
        from
    }

    /// `later` are the results for the following positions, from the last one on.
    fn ends(
        &self,
        group: &Group,
        start: usize,
        text: &[Unit],
        (inner, later): (&[Vec<Positions>], &[Positions]),
    ) -> Positions {
        let begin = only(start, text.len());
        let mut once = vec![false; begin.len()];
        for items in &group.choices {
            add(&mut once, &self.walked(items, begin.clone(), text, inner));
        }
        let mut found = once.clone();
        match group.kind {
            b'!' => found.iter_mut().enumerate().for_each(|(at, end)| *end = at >= start && !*end),
            b'*' | b'+' => {
                let again = later.iter().zip(once.iter().rev()).filter(|(_, is_end)| **is_end);
                again.for_each(|(later, _)| add(&mut found, later));
            }
            _ => {}
        }
        if matches!(group.kind, b'?' | b'*') {
            add(&mut found, &begin);
        }
        found
    }
}

fn only(at: usize, len: usize) -> Positions {
    (0..=len).map(|position| position == at).collect()
}

fn add(to: &mut Positions, more: &Positions) {
    to.iter_mut().zip(more).for_each(|(to, more)| *to |= more);
}

fn step(to: &mut Positions, at: usize, is_match: bool) {
    if let Some(next) = to.get_mut(at + 1) {
        *next |= is_match;
    }
}

fn units(bytes: &[u8], dialect: Dialect) -> Vec<Unit> {
    if !dialect.characters {
        return bytes.iter().copied().map(Unit::from).collect();
    }
    let mut units = Vec::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        units.extend(chunk.valid().chars().map(Unit::from));
        units.extend(chunk.invalid().iter().map(|&byte| STRAY_BYTE_BASE + Unit::from(byte)));
    }
    units
}

/// The longest prefix that is ASCII.
fn ascii(units: impl Iterator<Item = Unit>) -> Vec<u8> {
    units.map_while(|unit| u8::try_from(unit).ok().filter(u8::is_ascii)).collect()
}

struct Parser {
    text: Vec<Unit>,
    dialect: Dialect,
    at: usize,
    unclosed: bool,
}

impl Parser {
    /// 0 at the end, and for a unit that is not ASCII.
    fn sign(&self, at: usize) -> u8 {
        self.text.get(at).and_then(|&unit| u8::try_from(unit).ok()).unwrap_or(0)
    }

    fn items(&mut self) -> (Vec<Item>, Vec<Group>) {
        let closed = self.closed();
        let mut groups = Vec::new();
        let mut open = Vec::new();
        let mut items = Vec::new();
        let (between, end) = if self.dialect.braces { (b',', b'}') } else { (b'|', b')') };
        while self.at < self.text.len() {
            let sign = self.sign(self.at);
            if let Some((kind, len)) = self.opening().filter(|_| closed.contains(&self.at)) {
                open.push((Group { kind, choices: Vec::new() }, std::mem::take(&mut items)));
                self.at += len;
                continue;
            }
            match open.last_mut() {
                Some((group, _)) if sign == between => group.choices.push(std::mem::take(&mut items)),
                Some(_) if sign == end => {
                    let (mut group, around) = open.pop().unwrap_or_default();
                    group.choices.push(std::mem::replace(&mut items, around));
                    items.push(Item::Group(groups.len()));
                    groups.push(group);
                }
                _ => {
                    let run = self.run(&mut groups);
                    let item = run.unwrap_or_else(|| self.item());
                    items.push(item);
                    continue;
                }
            }
            self.at += 1;
        }
        (items, groups)
    }

    /// Also returns the length of the opening.
    fn opening(&self) -> Option<(u8, usize)> {
        let (sign, next) = (self.sign(self.at), self.sign(self.at + 1));
        match sign {
            b'{' if self.dialect.braces => Some((b'@', 1)),
            b'?' | b'*' | b'+' | b'@' | b'!' if self.dialect.groups && next == b'(' => Some((sign, 2)),
            _ => None,
        }
    }

    /// Unclosed groups are literal.
    fn closed(&mut self) -> Vec<usize> {
        let mut open = Vec::new();
        let mut closed = Vec::new();
        let start = self.at;
        let end = if self.dialect.braces { b'}' } else { b')' };
        while self.at < self.text.len() {
            if let Some((_, len)) = self.opening() {
                open.push(self.at);
                self.at += len;
                continue;
            }
            if self.sign(self.at) == end {
                closed.extend(open.pop());
            }
            self.item();
        }
        self.at = start;
        self.unclosed |= !open.is_empty();
        closed
    }

    /// `**` at the beginning of a name; with a slash after it, any number of names.
    fn run(&mut self, groups: &mut Vec<Group>) -> Option<Item> {
        let begins = self.at == 0 || self.sign(self.at - 1) == b'/';
        let is_run = self.dialect.braces && begins && self.sign(self.at) == b'*';
        if !is_run || self.sign(self.at + 1) != b'*' {
            return None;
        }
        match self.text.get(self.at + 2) {
            None => {
                self.at += 2;
                Some(Item::Run)
            }
            Some(&next) if next == Unit::from(b'/') => {
                self.at += 3;
                groups.push(Group { kind: b'?', choices: vec![vec![Item::Run, Item::One(next)]] });
                Some(Item::Group(groups.len() - 1))
            }
            Some(_) => None,
        }
    }

    fn item(&mut self) -> Item {
        let own = self.text[self.at];
        self.at += 1;
        match self.sign(self.at - 1) {
            b'*' => Item::Star,
            b'?' => Item::Any,
            b'\\' if self.at < self.text.len() => {
                self.at += 1;
                Item::One(self.text[self.at - 1])
            }
            b'[' => self.set().unwrap_or_else(|| {
                self.unclosed = true;
                Item::One(own)
            }),
            _ => Item::One(own),
        }
    }

    /// Parses the text between `[` and `]`; a `]` at the beginning is a member.
    fn set(&mut self) -> Option<Item> {
        let negated = matches!(self.sign(self.at), b'!' | b'^');
        let start = self.at + usize::from(negated);
        let (mut at, mut ranges) = (start, Vec::new());
        while at == start || self.sign(at) != b']' {
            self.text.get(at)?;
            if let Some((class, end)) = self.class(at) {
                ranges.extend(class);
                at = end;
                continue;
            }
            let member = |at: usize| {
                let escaped = usize::from(self.sign(at) == b'\\');
                self.text.get(at + escaped).map(|unit| (*unit, at + escaped + 1))
            };
            let (first, behind) = member(at)?;
            let is_range = self.sign(behind) == b'-' && self.sign(behind + 1) != b']';
            let (last, behind) = if is_range { member(behind + 1)? } else { (first, behind) };
            ranges.push((first, last));
            at = behind;
        }
        self.at = at + 1;
        Some(Item::Set { ranges, negated })
    }

    /// A class such as `[:digit:]`; also returns the position after it.
    fn class(&self, at: usize) -> Option<(Vec<(Unit, Unit)>, usize)> {
        let name = self.text[at..].strip_prefix(&[Unit::from(b'['), Unit::from(b':')])?;
        let end = name.windows(2).position(|two| two == [Unit::from(b':'), Unit::from(b']')])?;
        let name = ascii(name[..end].iter().copied());
        let members = (0..=0x7f).filter(|byte| in_class(&name, *byte));
        Some((members.map(|byte| (byte.into(), byte.into())).collect(), at + end + 4))
    }
}

fn in_class(class: &[u8], byte: u8) -> bool {
    match class {
        b"alpha" => byte.is_ascii_alphabetic(),
        b"digit" => byte.is_ascii_digit(),
        b"alnum" => byte.is_ascii_alphanumeric(),
        b"upper" => byte.is_ascii_uppercase(),
        b"lower" => byte.is_ascii_lowercase(),
        b"space" => byte.is_ascii_whitespace(),
        b"punct" => byte.is_ascii_punctuation(),
        b"xdigit" => byte.is_ascii_hexdigit(),
        b"blank" => matches!(byte, b' ' | b'\t'),
        b"cntrl" => byte.is_ascii_control(),
        b"graph" => byte.is_ascii_graphic(),
        b"print" => byte.is_ascii_graphic() || byte == b' ',
        _ => false,
    }
}

#[cfg(test)]
mod tests;
