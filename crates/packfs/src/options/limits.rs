//! Limits on input: an option for each row of their table, and one that lifts all.

use super::table::bare;
use super::values::{SWITCH, Values};
use super::{Info, Mark, Options};
use packfs_core::{Error, LIMITS, Limits, Result, escaped, parse_size};
use std::ffi::OsStr;

const GROUP: &str = "Limits on untrusted images, tars and manifests";

/// Value of `none` for [`Limits::allow`], above any count.
const NONE: u64 = u64::MAX;

const SIZE: Values<u64> =
    Values::new("SIZE", |typed| if typed == "none" { Ok(NONE) } else { parse_size(typed) });
const COUNT: Values<u64> = Values::new("N", |typed| match typed {
    "none" => Ok(NONE),
    _ => typed.parse().map_err(|_| "neither a number nor none".to_owned()),
});

/// The first lifts all; the others have the order of the table.
static INFOS: [Info; 1 + LIMITS.len()] = {
    let lifted = Info {
        name: "no-limits",
        group: GROUP,
        docs: "Lift all limits that no other option sets\n\n For trusted input. The value none lifts a \
               single limit, as in --max-depth none. What the format itself forbids stays forbidden.",
        marks: &[Mark::Shared],
        check: |text| SWITCH.read(text).map(drop),
        ..bare(&SWITCH)
    };
    let mut infos = [lifted; 1 + LIMITS.len()];
    let mut index = 0;
    while index < LIMITS.len() {
        let row = &LIMITS[index];
        let own = if row.is_size {
            Info { check: |text| SIZE.read(text).map(drop), ..bare(&SIZE) }
        } else {
            Info { check: |text| COUNT.read(text).map(drop), ..bare(&COUNT) }
        };
        index += 1;
        infos[index] = Info { name: row.option, group: GROUP, docs: row.help, marks: &[Mark::Shared], ..own };
    }
    infos
};

impl super::table::Sealed for Limits {}

impl Options for Limits {
    fn infos() -> Vec<&'static Info> {
        INFOS.iter().collect()
    }

    fn try_set(&mut self, name: &str, text: &OsStr) -> Option<Result<()>> {
        let index = INFOS.iter().position(|info| info.has_name(name))?;
        let row = index.checked_sub(1).and_then(|index| LIMITS.get(index));
        let read = match row {
            None => SWITCH.read(text).map(|yes| if yes { lifted(*self) } else { *self }),
            Some(row) => {
                let values = if row.is_size { SIZE } else { COUNT };
                values.read(text).map(|allowed| self.allow(row.limit, allowed))
            }
        };
        Some(read.map(|limits| *self = limits).map_err(|fault| {
            let text = escaped(text.as_encoded_bytes());
            Error::usage(format!("option {name}={text}: {fault}"))
        }))
    }
}

fn lifted(limits: Limits) -> Limits {
    // No other option set a limit that is that of the default.
    let default = Limits::default();
    let rows = LIMITS.iter().filter(|row| limits.allowed(row.limit) == default.allowed(row.limit));
    rows.fold(limits, |limits, row| limits.lift(row.limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(texts: &[(&str, &str)]) -> Limits {
        let mut limits = Limits::default();
        texts.iter().for_each(|(name, text)| limits.set(name, text).unwrap());
        limits
    }

    #[test]
    fn every_limit_has_its_option() {
        for row in LIMITS {
            let option = row.option;
            assert_eq!(limits(&[(option, "123")]), Limits::default().allow(row.limit, 123), "{option}");
            assert_eq!(limits(&[(option, "none")]).allowed(row.limit), None, "{option}");
            assert_eq!(limits(&[("no-limits", "on"), (option, "9")]).allowed(row.limit), Some(9), "{option}");
            assert_eq!(limits(&[(option, "9"), ("no-limits", "on")]).allowed(row.limit), Some(9), "{option}");
            assert_eq!(limits(&[("no-limits", "on")]).allowed(row.limit), None, "{option}");
        }
        assert!(
            Limits::default().set("max-depth", "deep").unwrap_err().to_string().contains("max-depth=deep")
        );
    }
}
