//! Options of the library that each kind of verb has.

use super::texts::{Argument, Choice, Texts};
use packfs::options::{Info, Mark, Options, shape_of_texts};
use packfs::source::Shape;
use packfs::{Error, Limits, OpenOptions, PackOptions, Result};

/// Defines choices: a name, and its arguments.
macro_rules! choices {
    ($($(#[$doc:meta])+ $name:ident, $arguments:expr;)+) => {
        $(
            $(#[$doc])+
            #[derive(Clone, Debug)]
            pub struct $name;

            impl Choice for $name {
                fn arguments() -> Vec<Argument> {
                    $arguments
                }
            }
        )+
    };
}

choices! {
    /// Options of packing, with those of shaping and limits.
    Packing, all(PackOptions::infos());

    /// The same of an image that is packed again.
    Repacking, without(PackOptions::infos(), &[Mark::Anew]);

    /// Those that a plan has for all shards. A directory has no limits.
    Planning, {
        let limits = Limits::infos();
        let is_limit = |info: &&'static Info| limits.iter().any(|limit| limit.name == info.name);
        let rows = PackOptions::infos().into_iter().filter(|info| !is_limit(info)).collect();
        without(rows, &[Mark::Whole, Mark::Run])
    };

    /// Those that never change the image.
    Running, only(PackOptions::infos(), Mark::Run);

    /// Options of shaping.
    Shaping, all(Shape::infos());

    /// Limits.
    Limiting, all(Limits::infos());

    /// Options of opening an image.
    Opening, all(OpenOptions::infos());

    /// Those of images in registries.
    Registry, only(OpenOptions::infos(), Mark::Registry);

    /// Those of a source that may be an image.
    OfSource, of_source(all(OpenOptions::infos()));

    /// Those of an image that is packed again.
    OfOld, of_source(without(OpenOptions::infos(), &[Mark::Trust]));

    /// Those that hold for each of two sources.
    OfBoth, only(OpenOptions::infos(), Mark::Shared);

    /// Those of the first of two sources, by their own names, too.
    OfA, of_side("a", true);

    /// Those of the second of two sources.
    OfB, of_side("b", false);
}

fn all(rows: Vec<&'static Info>) -> Vec<Argument> {
    rows.into_iter().map(Argument::of).collect()
}

fn only(rows: Vec<&'static Info>, mark: Mark) -> Vec<Argument> {
    all(rows.into_iter().filter(|info| info.is(mark)).collect())
}

fn without(rows: Vec<&'static Info>, marks: &[Mark]) -> Vec<Argument> {
    all(rows.into_iter().filter(|info| !marks.iter().any(|mark| info.is(*mark))).collect())
}

/// Names options of opening beside those of packing, which have the shorter names.
fn of_source(arguments: Vec<Argument>) -> Vec<Argument> {
    let taken = PackOptions::infos();
    let named = |mut argument: Argument| {
        let longer = format!("source-{}", argument.name);
        if taken.iter().any(|info| info.name == argument.name) {
            argument.name = longer;
        } else {
            argument.also.push(longer);
        }
        Argument { is_common: false, ..argument }
    };
    arguments.into_iter().map(named).collect()
}

/// Returns options of one of two sources, which help lists as values of a single one.
fn of_side(letter: &str, is_first: bool) -> Vec<Argument> {
    let rows = without(OpenOptions::infos(), &[Mark::Shared]);
    let named = |argument: Argument| {
        let with_letter = |name: &String| format!("{name}-{letter}");
        let visible = argument.info.aliases.iter().map(|name| (*name).to_owned());
        let mut also: Vec<String> = argument.also.iter().cloned().chain(visible).collect();
        let longer: Vec<String> = also.iter().map(with_letter).collect();
        also.push(argument.name.clone());
        also = if is_first { [also, longer].concat() } else { longer };
        Argument { name: with_letter(&argument.name), also, is_hidden: true, ..argument }
    };
    rows.into_iter().map(named).collect()
}

impl Texts<Shaping> {
    /// Returns the changes; files that options name are read.
    pub fn shape(&self) -> Result<Shape> {
        self.check_stdin()?;
        shape_of_texts(self.iter())
    }
}

impl<C> Texts<C> {
    /// Refuses options that would read standard input twice.
    ///
    /// Errors: `Usage`.
    pub fn check_stdin(&self) -> Result<()> {
        match self.of_stdin().nth(1) {
            None => Ok(()),
            Some(info) => {
                let what = format!("--{} - is given twice", info.name);
                Err(Error::usage(format!("cannot read standard input twice: {what}")))
            }
        }
    }
}

impl Texts<Registry> {
    /// Returns how images are fetched.
    pub fn remote(&self) -> Result<packfs::remote::RemoteOptions> {
        Ok(OpenOptions::of_texts(self.iter())?.remote_options().clone())
    }
}

impl Texts<Limiting> {
    /// Returns the limits.
    pub fn limits(&self) -> Result<Limits> {
        Limits::default().with_texts(self.iter())
    }
}
