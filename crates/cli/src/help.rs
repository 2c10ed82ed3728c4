//! Layout of help: the heading of each option, and the options that `-h` shows.
//!
//! Verbs declare options with a first line that stands alone in `-h`; details follow after an empty
//! line and are shown by `--help`.

use clap::builder::StyledStr;
use clap::{Arg, Command};
use packfs::LIMITS;

/// Options of verbs below each heading, by their long names. Rows of the library say theirs; others
/// stand below "Options".
const HEADINGS: [(&str, &str); 5] = [
    ("Source", "as-file merge"),
    ("Format", "kernel"),
    ("Metadata", "uid gid owner owner-map no-xattrs no-times no-devices strict"),
    ("Output", "output report sync json quiet stats"),
    ("Resources", "jobs sandbox"),
];

/// Headings of options that mean something else in one verb.
const EXCEPTIONS: [(&str, &str, &str); 6] = [
    ("mount", "kernel", "Options"),
    ("diff", "no-xattrs", "Options"),
    ("repack", "trust", "Compression"),
    ("diff", "no-times", "Options"),
    ("repair", "output", "Options"),
    ("sign", "output", "Options"),
];

/// Options that `-h` leaves out in every verb.
const RARE: &str = "stats sandbox hash-offset hash-block-size cache-size threads record";

/// All that `-h` shows of verbs with many options.
const SHOWN: [(&str, &str); 1] =
    [("plan", "shards out from-list exclude format codec block-size option emit jobs quiet json")];

/// Value names that several options share, explained once at the end of long help.
const VALUES: [(&str, &str); 2] = [
    ("SIZE", "number with an optional unit: 4096, 128K, 1M, 0x1000; K is 1024"),
    ("TIME", "seconds since 1970 (0, @0) or a date: 2026-11-20, 2026-11-20T13:05:00Z"),
];

/// The template of the parser, with a list of arguments in the place of its own.
const TEMPLATE: &str = "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}{all-args}{after-help}";

/// The template of the whole program, with the verbs in groups behind the usage.
const GROUPED: [&str; 2] =
    ["{about-with-newline}\n{usage-heading} {usage}\n", "\nOptions:\n{options}{after-help}"];

/// Lists the verbs below headings, each of which has the next so many.
pub fn grouped(command: Command, groups: &[(&str, usize)]) -> Command {
    let styles = command.get_styles();
    let (header, literal) = (*styles.get_header(), *styles.get_literal());
    let width = command.get_subcommands().map(|verb| verb.get_name().len()).max().unwrap_or_default();
    let mut verbs = command.get_subcommands();
    let mut text = GROUPED[0].to_owned();
    for (heading, count) in groups {
        text += &format!("\n{header}{heading}:{header:#}\n");
        for verb in verbs.by_ref().take(*count) {
            let (name, about) = (verb.get_name(), verb.get_about().map(ToString::to_string));
            let about = about.unwrap_or_default();
            text += &format!("  {literal}{name:width$}{literal:#}  {about}\n");
        }
    }
    drop(verbs);
    text += &GROUPED[1].replace("Options:", &format!("{header}Options:{header:#}"));
    command.help_template(text)
}

/// Puts the options of every verb below their headings.
pub fn arrange(command: Command) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    names.iter().fold(command, |command, name| command.mut_subcommand(name, |verb| arrange_verb(verb, name)))
}

fn arrange_verb(verb: Command, name: &str) -> Command {
    let verb = verb.mut_args(|arg| {
        let Some(long) = arg.get_long().map(str::to_owned) else { return arg };
        let arg = with_limit(arg, &long);
        let is_hidden = arg.is_hide_short_help_set() || !is_shown(name, &long);
        match heading(name, &long).filter(|_| arg.get_help_heading().is_none()) {
            Some(heading) => arg.help_heading(heading).hide_short_help(is_hidden),
            None => arg.hide_short_help(is_hidden),
        }
    });
    let examples = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
    let whole = verb.get_after_long_help().map_or(examples.clone(), ToString::to_string);
    if verb.is_disable_help_flag_set() {
        return verb;
    }
    let whole = with_values(&whole, &verb);
    verb.after_help(format!("{examples}\n\n`packfs {name} --help` lists all options.")).after_long_help(whole)
}

/// Adds the default of a limit to the help of its option.
fn with_limit(arg: Arg, long: &str) -> Arg {
    let Some(row) = LIMITS.iter().find(|row| row.option == long) else { return arg };
    let units = [(1 << 40, "T"), (1 << 30, "G"), (1 << 20, "M"), (1, "")];
    let is_size = arg.get_value_names().is_some_and(|names| names == ["SIZE"]);
    let exact = |unit: &&(u64, &str)| unit.0 == 1 || is_size && row.default % unit.0 == 0;
    let (unit, letter) = units.iter().find(exact).unwrap_or(&(1, ""));
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    arg.help(format!("{help} (default: {}{letter})", row.default / unit))
}

/// Explains shared value names of a verb below its examples.
fn with_values(help: &str, verb: &Command) -> String {
    let is_used = |name: &str| {
        verb.get_arguments().filter_map(Arg::get_value_names).any(|names| names.iter().any(|it| it == name))
    };
    let used = VALUES.iter().filter(|(name, _)| is_used(name));
    let rows: Vec<String> = used.map(|(name, meaning)| format!("\n  {name}  {meaning}")).collect();
    if rows.is_empty() {
        return help.to_owned();
    }
    let (examples, rest) = help.split_at(help.find("\n\n").unwrap_or(help.len()));
    format!("{examples}\n\nValues:{}{rest}", rows.concat())
}

/// Lists arguments by the names given, one each, instead of by those that the parser derives.
///
/// Several arguments followed by one cannot be declared as such, because options may stand between.
pub fn name_arguments(verb: Command, names: &[&str]) -> Command {
    let header = *verb.get_styles().get_header();
    let width = names.iter().map(|name| name.len()).max().unwrap_or_default();
    let (mut short, mut long) = (format!("{header}Arguments:{header:#}"), String::new());
    for (name, arg) in names.iter().zip(verb.get_positionals()) {
        let text = |help: Option<&StyledStr>| help.map(ToString::to_string).unwrap_or_default();
        let line = text(arg.get_help());
        let details = text(arg.get_long_help()).replace("\n\n", "\n          \n          ");
        long = format!("{long}\n  {name}\n          {details}\n");
        short = format!("{short}\n  {name:width$}  {line}");
    }
    let long = format!("{header}Arguments:{header:#}{}", long.trim_end());
    verb.mut_args(
        |arg| {
            if arg.is_positional() { arg.hide_short_help(true).hide_long_help(true) } else { arg }
        },
    )
    .help_template(TEMPLATE)
    .before_help(short)
    .before_long_help(long)
}

/// Returns the heading of an option; `None` leaves the one it was declared with.
fn heading(verb: &str, option: &str) -> Option<&'static str> {
    let exception = EXCEPTIONS.iter().find(|row| (row.0, row.1) == (verb, option));
    let heading = exception
        .map(|row| row.2)
        .or_else(|| HEADINGS.iter().find(|(_, options)| lists(options, option)).map(|(heading, _)| *heading));
    heading.filter(|heading| *heading != "Options")
}

/// True for an option of a list.
fn lists(options: &str, option: &str) -> bool {
    options.split(' ').any(|own| own == option)
}

fn is_shown(verb: &str, option: &str) -> bool {
    match SHOWN.iter().find(|(name, _)| *name == verb) {
        Some((_, shown)) => lists(shown, option),
        None => !lists(RARE, option),
    }
}

#[cfg(test)]
mod tests {
    use crate::command;
    use clap::{Arg, Command};

    /// Words that the style guide replaces.
    const AVOIDED: [&str; 9] =
        ["whoever", "somebody", "nobody", "anybody", "what is", "told", "made of", "so many", "BYTES"];

    /// Options that most verbs have.
    const GLOBAL: [&str; 3] = ["jobs", "quiet", "json"];

    fn verbs() -> Vec<Command> {
        let mut whole = command().term_width(80);
        whole.build();
        whole.get_subcommands().filter(|verb| !verb.is_disable_help_flag_set()).cloned().collect()
    }

    fn first_line(arg: &Arg) -> String {
        arg.get_help().map(ToString::to_string).unwrap_or_default()
    }

    #[test]
    fn short_help_fits_a_terminal() {
        for mut verb in verbs() {
            let help = verb.render_help().to_string();
            for line in help.lines() {
                assert!(line.chars().count() <= 80, "{}: {line}", verb.get_name());
            }
            assert!(help.trim_end().ends_with("--help` lists all options."), "{help}");
        }
    }

    #[test]
    fn short_help_shows_at_most_a_dozen_options() {
        for verb in verbs() {
            let shown =
                verb.get_opts().chain(verb.get_arguments().filter(|arg| !arg.get_action().takes_values()));
            let shown = shown.filter(|arg| !arg.is_hide_short_help_set() && !arg.is_hide_set());
            let shown =
                shown.filter_map(Arg::get_long).filter(|long| !GLOBAL.contains(long) && *long != "help");
            let shown: std::collections::BTreeSet<&str> = shown.collect();
            assert!(shown.len() <= 13, "{}: {shown:?}", verb.get_name());
        }
    }

    #[test]
    fn first_lines_fit_60_characters() {
        for verb in verbs() {
            for arg in verb.get_arguments().filter(|arg| !arg.is_hide_set()) {
                let line = first_line(arg);
                assert!(line.chars().count() <= 60, "{}: {line}", verb.get_name());
                assert!(
                    line.starts_with(char::is_uppercase) && !line.ends_with('.'),
                    "{}: {line}",
                    verb.get_name()
                );
            }
        }
    }

    #[test]
    fn examples_and_values_are_not_wrapped() {
        for verb in verbs() {
            let help = verb.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            for line in help.lines().take_while(|line| !line.starts_with("Codecs")) {
                assert!(line.chars().count() <= 80, "{}: {line}", verb.get_name());
            }
        }
    }

    #[test]
    fn help_uses_the_words_of_the_style_guide() {
        for mut verb in verbs() {
            let help = verb.render_long_help().to_string().replace('\n', " ");
            for word in AVOIDED {
                assert!(!help.contains(word), "{}: {word} in {help}", verb.get_name());
            }
        }
    }

    #[test]
    fn every_listed_option_exists() {
        let verbs = verbs();
        let has = |name: &str| {
            verbs.iter().flat_map(Command::get_arguments).any(|arg| arg.get_long() == Some(name))
        };
        let listed = super::HEADINGS.iter().chain(&super::SHOWN).map(|(_, options)| *options);
        let listed = listed.chain([super::RARE]);
        for name in listed.flat_map(|options| options.split(' ')) {
            assert!(has(name), "{name}");
        }
    }
}
