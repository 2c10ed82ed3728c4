//! Settings of a mount: options of the command line, and words of `-o` as in `/etc/fstab`.

use crate::out::text;
use packfs::mount::{Channel, MountFlags, OwnerMap};
use packfs::options::{Options, Takes};
use packfs::source::IdMap;
use packfs::{Error, ImagePath, OpenOptions, Owner, Result};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Memory for decoded blocks unless something else is asked for.
const CACHE_LEN: u64 = 64 << 20;

/// Everything that shapes a mount.
#[derive(Clone, Debug)]
pub struct Settings {
    pub opening: OpenOptions,
    pub subdir: ImagePath,
    /// Restrictions but those of set-id bits and devices.
    pub flags: MountFlags,
    /// Set-id bits and devices as asked for: true has them take effect.
    pub suid: Option<bool>,
    pub dev: Option<bool>,
    pub allow_other: bool,
    pub default_permissions: bool,
    /// Set to mount through FUSE, also as root.
    pub is_fuse: bool,
    /// Set to mount by the kernel, or fail.
    pub is_kernel: bool,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub owner_map: Vec<IdMap>,
    pub idle_timeout: Option<Duration>,
    pub cache_len: Option<u64>,
    pub threads: Option<u16>,
    pub channel: Option<Channel>,
    pub record: Option<PathBuf>,
    /// Source and type in the mount table (FUSE).
    pub source: Option<PathBuf>,
    pub subtype: Option<OsString>,
}

impl Settings {
    /// Returns the defaults. Mounts through FUSE are private to their user, who may read everything
    /// unless it is root.
    pub fn new(is_root: bool) -> Self {
        Settings {
            opening: OpenOptions::new(),
            subdir: ImagePath::root(),
            flags: MountFlags::default(),
            suid: None,
            dev: None,
            allow_other: false,
            default_permissions: is_root,
            is_fuse: false,
            is_kernel: false,
            uid: None,
            gid: None,
            owner_map: Vec::new(),
            idle_timeout: None,
            cache_len: None,
            threads: None,
            channel: None,
            record: None,
            source: None,
            subtype: None,
        }
    }

    /// Restrictions of a mount by the kernel: as `mount(8)` has them, those that are asked for.
    pub fn kernel_flags(&self) -> MountFlags {
        MountFlags { nosuid: self.suid == Some(false), nodev: self.dev == Some(false), ..self.flags }
    }

    /// Restrictions of a mount through FUSE: as libfuse has them, no image gets privileges unless
    /// that is asked for.
    pub fn fuse_flags(&self) -> MountFlags {
        MountFlags { nosuid: self.suid != Some(true), nodev: self.dev != Some(true), ..self.flags }
    }

    /// Names those who can access a mount through FUSE, for messages to root.
    pub fn audience(&self) -> &'static str {
        if self.allow_other { "" } else { " for root alone: -o allow_other opens it to all users" }
    }

    /// Takes in one word behind `-o`.
    ///
    /// Errors: `Usage` for a word that means nothing here.
    pub fn absorb(&mut self, word: &OsStr) -> Result<()> {
        let bytes = word.as_bytes();
        let (key, value) = match bytes.iter().position(|&byte| byte == b'=') {
            Some(at) => (&bytes[..at], Some(&bytes[at + 1..])),
            None => (bytes, None),
        };
        let key = String::from_utf8_lossy(key);
        let text = OsStr::from_bytes(value.unwrap_or(b"on"));
        if let Some(set) = self.opening.try_set(&key, text) {
            return set.map_err(|error| error.at("-o"));
        }
        match value {
            None => self.absorb_word(&key),
            Some(value) => self.absorb_value(&key, value),
        }
    }

    fn absorb_word(&mut self, word: &str) -> Result<()> {
        match word {
            "nosuid" => self.suid = Some(false),
            "nodev" => self.dev = Some(false),
            "noexec" => self.flags.noexec = true,
            "nosymfollow" => self.flags.nosymfollow = true,
            "suid" => self.suid = Some(true),
            "dev" => self.dev = Some(true),
            "exec" => self.flags.noexec = false,
            "symfollow" => self.flags.nosymfollow = false,
            "allow_other" => (self.allow_other, self.default_permissions) = (true, true),
            "default_permissions" => self.default_permissions = true,
            "fuse" => self.is_fuse = true,
            "kernel" => self.is_kernel = true,
            _ if is_for_others(word) => {}
            _ => return Err(unknown(word)),
        }
        Ok(())
    }

    fn absorb_value(&mut self, key: &str, value: &[u8]) -> Result<()> {
        let text = String::from_utf8_lossy(value);
        let wrong = |fault: String| Error::usage(format!("-o {key}={text}: {fault}"));
        let id = || text.parse::<u32>().map_err(|_| wrong("not a number".into()));
        match key {
            "subdir" => self.subdir = ImagePath::parse(value)?,
            "uid" => self.uid = Some(id()?),
            "gid" => self.gid = Some(id()?),
            "owner-map" => self.owner_map.push(text.parse()?),
            "idle-timeout" => self.idle_timeout = Some(parse_duration(&text).map_err(wrong)?),
            "cache-size" => self.cache_len = Some(text::parse_size(&text).map_err(wrong)?),
            "threads" => {
                let count = text.parse().ok().filter(|count| (1..=256).contains(count));
                self.threads = Some(count.ok_or_else(|| wrong("1 to 256 are allowed".into()))?);
            }
            "channel" => self.channel = Some(text.parse()?),
            "record" => self.record = Some(OsStr::from_bytes(value).into()),
            "fsname" => self.source = Some(OsStr::from_bytes(value).into()),
            "subtype" => self.subtype = Some(OsStr::from_bytes(value).into()),
            _ if is_for_others(key) => {}
            _ => return Err(unknown(key)),
        }
        Ok(())
    }

    /// Decides for FUSE where only that can do what is asked for.
    ///
    /// Errors: `Usage` if the kernel was insisted on all the same.
    pub fn decide(&mut self) -> Result<()> {
        let for_fuse = [
            (self.uid.is_some(), "uid"),
            (self.gid.is_some(), "gid"),
            (!self.owner_map.is_empty(), "owner-map"),
            (self.idle_timeout.is_some(), "idle-timeout"),
            (self.cache_len.is_some(), "cache-size"),
            (self.threads.is_some(), "threads"),
            (self.channel.is_some(), "channel"),
            (self.record.is_some(), "record"),
            (self.source.is_some(), "fsname"),
            (self.subtype.is_some(), "subtype"),
            (self.is_fuse, "fuse"),
        ];
        let wanted = for_fuse.iter().find(|(wanted, _)| *wanted);
        if let (Some((_, option)), true) = (wanted, self.is_kernel) {
            return Err(Error::usage(format!(
                "cannot mount by the kernel with --{option}: only FUSE supports it"
            )));
        }
        self.is_fuse = wanted.is_some();
        Ok(())
    }

    /// Memory for decoded blocks, in bytes.
    pub fn cache_bytes(&self) -> u64 {
        self.cache_len.unwrap_or(CACHE_LEN)
    }

    /// Returns the map of owners, if owners differ from those in the image.
    pub fn owners(&self) -> Option<OwnerMap> {
        let (uid, gid, maps) = (self.uid, self.gid, self.owner_map.clone());
        if uid.is_none() && gid.is_none() && maps.is_empty() {
            return None;
        }
        let mapped = move |id: u32| maps.iter().find_map(|map| map.apply(id)).unwrap_or(id);
        Some(Arc::new(move |owner: Owner| Owner {
            uid: uid.unwrap_or_else(|| mapped(owner.uid)),
            gid: gid.unwrap_or_else(|| mapped(owner.gid)),
        }))
    }
}

/// Words of `/etc/fstab` that are for `mount(8)`, systemd and others, or that hold in any case.
fn is_for_others(word: &str) -> bool {
    const WORDS: [&str; 24] = [
        "ro",
        "rw",
        "defaults",
        "auto",
        "noauto",
        "nofail",
        "user",
        "users",
        "nouser",
        "owner",
        "group",
        "_netdev",
        "loop",
        "atime",
        "noatime",
        "relatime",
        "norelatime",
        "strictatime",
        "diratime",
        "nodiratime",
        "sync",
        "async",
        "silent",
        "comment",
    ];
    WORDS.contains(&word) || word.starts_with("x-") || word.starts_with("X-")
}

fn unknown(word: &str) -> Error {
    let opening = OpenOptions::infos().into_iter().map(|info| match info.takes {
        Takes::One | Takes::Many => format!("{}=", info.name),
        _ => info.name.to_owned(),
    });
    let opening = opening.collect::<Vec<_>>().join(", ");
    let known = "nosuid, nodev, noexec, nosymfollow (and suid, dev, exec, symfollow), allow_other, default_permissions, fuse, kernel, subdir=, uid=, \
                 gid=, owner-map=, idle-timeout=, cache-size=, threads=, channel=, record=, fsname=, subtype=";
    Error::usage(format!("unknown mount option {word}")).hint(format!("known options: {known}, {opening}"))
}

/// Reads `90`, `90s`, `10m`, `2h`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let refuse = || "not a duration; use 90, 90s, 10m or 2h".to_owned();
    let digits_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits_end);
    let factor = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(refuse()),
    };
    let number: u32 = digits.parse().map_err(|_| refuse())?;
    if number == 0 {
        return Err(refuse());
    }
    Ok(Duration::from_secs(u64::from(number) * factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn absorbed(words: &str) -> Result<Settings> {
        let mut settings = Settings::new(false);
        for word in words.split(',') {
            settings.absorb(OsStr::new(word))?;
        }
        settings.decide()?;
        Ok(settings)
    }

    #[test]
    fn words_of_fstab_are_understood_or_ignored() {
        let settings =
            absorbed("rw,nofail,x-systemd.automount,noexec,suid,offset=4K,subdir=/usr/share,allow_other")
                .unwrap();
        let flags = settings.fuse_flags();
        assert!(flags.noexec && !flags.nosuid && flags.nodev);
        let flags = settings.kernel_flags();
        assert!(flags.noexec && !flags.nosuid && !flags.nodev);
        assert_eq!(settings.opening.image_offset(), 4096);
        assert_eq!(settings.subdir.as_bytes(), b"usr/share");
        assert!(settings.allow_other && settings.default_permissions && !settings.is_fuse);
    }

    #[test]
    fn refuses_words_that_mean_nothing() {
        for wrong in [
            "noexce",
            "offset=x",
            "uid=root",
            "threads=0",
            "channel=pipe",
            "kernel,channel=auto",
            "idle-timeout=0",
            "subdir=..",
            "kernel,uid=1",
            "fuse,kernel",
        ] {
            assert!(absorbed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn owners_are_set_or_mapped() {
        let owner = |words: &str| absorbed(words).unwrap().owners().unwrap()(Owner { uid: 5, gid: 7 });
        assert_eq!(owner("uid=1000"), Owner { uid: 1000, gid: 7 });
        assert_eq!(owner("owner-map=0-9:100000"), Owner { uid: 100_005, gid: 100_007 });
        assert_eq!(owner("owner-map=5:1,gid=2"), Owner { uid: 1, gid: 2 });
        assert!(absorbed("ro").unwrap().owners().is_none());
    }

    #[test]
    fn times_have_units() {
        assert_eq!(parse_duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("2h"), Ok(Duration::from_secs(7200)));
        assert!(
            parse_duration("-1").is_err() && parse_duration("1d").is_err() && parse_duration("").is_err()
        );
    }
}
