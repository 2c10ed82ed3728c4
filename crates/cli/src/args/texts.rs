//! Options of the library's tables as arguments: a loop makes them of the rows.

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use packfs::options::{Info, Mark, Takes};
use std::ffi::{OsStr, OsString};
use std::marker::PhantomData;

type Parsed<T> = std::result::Result<T, clap::Error>;

/// Option of a verb, by a row.
pub struct Argument {
    pub info: &'static Info,
    /// Name behind `--`, and among arguments.
    pub name: String,
    /// Other names, which help does not list.
    pub also: Vec<String>,
    /// Set to leave it out of all help.
    pub is_hidden: bool,
    /// Set to show it in short help.
    pub is_common: bool,
}

impl Argument {
    /// Returns the option as the row has it.
    pub fn of(info: &'static Info) -> Self {
        let also = info.also.iter().map(|name| (*name).to_owned()).collect();
        let is_common = info.is(Mark::Common);
        Argument { info, name: info.name.to_owned(), also, is_hidden: false, is_common }
    }

    /// Makes the arguments: one, or two that override each other.
    fn args(&self, contradicting: Vec<String>) -> Vec<Arg> {
        let Argument { info, name, .. } = self;
        let line = info.line();
        let help = [vec![line.to_owned()], info.details()].concat().join("\n\n");
        let arg = Arg::new(name.clone()).long(name.clone()).help(line).long_help(help);
        let visible = if self.is_hidden { &[] } else { info.aliases };
        let arg = arg.visible_aliases(visible).aliases(self.also.clone());
        let arg = arg.short(info.short.filter(|_| !self.is_hidden)).hide(self.is_hidden);
        let arg = arg.conflicts_with_all(contradicting).hide_short_help(!self.is_common);
        let arg = if let Some(needed) = info.needs { arg.requires(needed) } else { arg };
        let args = match info.takes {
            Takes::Nothing => vec![arg.action(ArgAction::SetTrue)],
            Takes::NothingOrNo(help) => {
                let not = Arg::new(no(name)).long(no(name)).help(help).hide_short_help(!self.is_common);
                let not = not.action(ArgAction::SetTrue).overrides_with(name.clone());
                let arg = arg.action(ArgAction::SetTrue).overrides_with(no(name)).hide_short_help(true);
                vec![arg, not]
            }
            Takes::One | Takes::Many => vec![with_value(arg, info)],
        };
        args.into_iter().map(|arg| arg.help_heading(info.group)).collect()
    }

    /// Takes the texts that were given.
    fn take(&self, matches: &mut ArgMatches, given: &mut Vec<(&'static Info, OsString)>) {
        let (info, name) = (self.info, &*self.name);
        let by_user = [Some(ValueSource::CommandLine), Some(ValueSource::EnvVariable)];
        let is_given = |matches: &ArgMatches, name: &str| by_user.contains(&matches.value_source(name));
        let is_on = |name: &str| is_given(matches, name) && matches.get_flag(name);
        match info.takes {
            Takes::Nothing | Takes::NothingOrNo(_) if is_on(name) => given.push((info, "on".into())),
            Takes::NothingOrNo(_) if is_on(&no(name)) => given.push((info, "off".into())),
            Takes::One | Takes::Many if is_given(matches, name) => {
                let texts = matches.remove_many::<OsString>(name).into_iter().flatten();
                given.extend(texts.map(|text| (info, text)));
            }
            _ => {}
        }
    }
}

/// Name of the option that takes a switch back.
fn no(name: &str) -> String {
    format!("no-{name}")
}

fn with_value(arg: Arg, info: &'static Info) -> Arg {
    let arg = arg.value_name(info.value).value_parser(Checked(info)).hide_possible_values(true);
    let arg = arg.allow_hyphen_values(info.takes_dashes);
    let arg = if info.default.is_empty() { arg } else { arg.default_value(info.default) };
    let arg = if let Some(variable) = info.env { arg.env(variable).hide_env_values(true) } else { arg };
    arg.action(if info.takes == Takes::Many { ArgAction::Append } else { ArgAction::Set })
}

/// Parser of values that stay texts once they are checked.
#[derive(Clone)]
struct Checked(&'static Info);

impl TypedValueParser for Checked {
    type Value = OsString;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Parsed<OsString> {
        let check = self.0.check;
        if check(value).is_ok() {
            return Ok(value.to_owned());
        }
        if value.to_str().is_none() {
            return Err(clap::Error::new(ErrorKind::InvalidUtf8).with_cmd(command));
        }
        let read = move |text: &str| check(OsStr::new(text)).map(|()| OsString::from(text));
        TypedValueParser::parse_ref(&read, command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let words = (self.0.words)();
        if words.is_empty() { None } else { Some(Box::new(words.into_iter().map(PossibleValue::new))) }
    }
}

/// Options that a verb has.
pub trait Choice {
    /// Returns them.
    fn arguments() -> Vec<Argument>;
}

/// Options that were given, as names and texts in the order of the rows.
#[derive(Clone, Debug)]
pub struct Texts<C> {
    given: Vec<(&'static Info, OsString)>,
    choice: PhantomData<fn() -> C>,
}

impl<C> Texts<C> {
    /// Returns names and texts.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &OsStr)> {
        self.given.iter().map(|(info, text)| (info.name, text.as_os_str()))
    }

    /// Returns the rows of what was given.
    pub fn infos(&self) -> impl Iterator<Item = &'static Info> {
        self.given.iter().map(|(info, _)| *info)
    }

    /// Returns the options that read standard input.
    pub fn of_stdin(&self) -> impl Iterator<Item = &'static Info> {
        let of_stdin = |(info, text): &&(&Info, OsString)| info.is(Mark::Stdin) && text == "-";
        self.given.iter().filter(of_stdin).map(|(info, _)| *info)
    }
}

impl<C: Choice> clap::Args for Texts<C> {
    fn augment_args(command: Command) -> Command {
        let all = C::arguments();
        let args = all.iter().flat_map(|own| {
            let contradicts = |other: &&Argument| own.info.conflicts.contains(&other.info.name);
            own.args(all.iter().filter(contradicts).map(|other| other.name.clone()).collect())
        });
        command.args(args)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<C: Choice> clap::FromArgMatches for Texts<C> {
    fn from_arg_matches(matches: &ArgMatches) -> Parsed<Self> {
        Self::from_arg_matches_mut(&mut matches.clone())
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Parsed<Self> {
        let mut given = Vec::new();
        C::arguments().iter().for_each(|argument| argument.take(matches, &mut given));
        Ok(Texts { given, choice: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Parsed<()> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
