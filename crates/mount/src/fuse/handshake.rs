//! The first request: negotiation of version and features.

use super::abi::{self, InitIn, InitInExt, InitOut, init, opcode};
use super::device::{Device, WRITE_LEN_MAX};
use packfs_core::{Error, Result, ResultExt};
use rustix::io::Errno;
use zerocopy::{FromBytes, IntoBytes};

/// Pages of a read; the kernel allows at most 256 (1 MiB) unless root raises the limit.
pub(crate) const READ_PAGES_MAX: u16 = 256;
/// Most concurrent read-ahead requests of the kernel.
const BACKGROUND_MAX: u16 = 64;
/// The same for a single file: more than a loop device issues.
const FILE_BACKGROUND_MAX: u16 = 512;
/// Features requested for an image.
const WANTED: u32 = init::ASYNC_READ
    | init::EXPORT_SUPPORT
    | init::DO_READDIRPLUS
    | init::ASYNC_DIO
    | init::NO_OPEN_SUPPORT
    | init::PARALLEL_DIROPS
    | init::MAX_PAGES
    | init::CACHE_SYMLINKS
    | init::NO_OPENDIR_SUPPORT;

/// Requests that the kernel can omit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Features {
    pub(crate) no_open: bool,
    pub(crate) no_opendir: bool,
}

pub(crate) struct InitOptions {
    flags: u32,
    write_len_max: u32,
    /// Background requests are read-ahead, and direct I/O of a loop device.
    background_max: u16,
}

impl InitOptions {
    pub(crate) fn of_image(options: &super::FuseOptions) -> Self {
        // Access control lists are part of permission checks.
        let flags = if options.default_permissions { WANTED | init::POSIX_ACL } else { WANTED };
        InitOptions { flags, write_len_max: WRITE_LEN_MAX, background_max: BACKGROUND_MAX }
    }

    /// A single file is read and written directly, in parts of any length.
    pub(crate) fn of_file(write_len_max: u32) -> Self {
        let flags = init::ASYNC_READ | init::ASYNC_DIO | init::MAX_PAGES;
        InitOptions { flags, write_len_max, background_max: FILE_BACKGROUND_MAX }
    }
}

/// Requests arrive after this. If the kernel offers io_uring, `takes_uring` decides about it.
///
/// Errors: `Unsupported` for a kernel that is too old, `Io` if it does not respond, `Failed` if the
/// mount is gone.
pub(crate) fn shake_hands(
    device: &mut Device,
    options: &InitOptions,
    mut takes_uring: impl FnMut() -> bool,
) -> Result<Features> {
    loop {
        let request = device.next().or_io(cannot)?;
        let Some(request) = request else { return Err(unmounted()) };
        let unique = request.header.unique;
        let asked = InitIn::read_from_prefix(request.body);
        let (asked, rest) = match (request.header.opcode, asked) {
            (opcode::INIT, Ok(asked)) => asked,
            _ => return Err(Error::io(cannot(), Errno::PROTO.into())),
        };
        let flags2 = InitInExt::read_from_prefix(rest).map_or(0, |(more, _)| more.flags2);
        let offers_uring = asked.flags & init::INIT_EXT != 0 && flags2 & init::OVER_IO_URING != 0;
        if asked.major > abi::VERSION {
            // The kernel repeats the request in a version that we support.
            let ours = InitOut { major: abi::VERSION, minor: abi::MINOR, ..InitOut::default() };
            device.answer(unique, Ok(ours.as_bytes()));
            continue;
        }
        if asked.major < abi::VERSION || asked.minor < abi::MINOR_MIN {
            device.answer(unique, Err(Errno::PROTO));
            let found = format!("the kernel has version {}.{}", asked.major, asked.minor);
            let needed = format!("{}.{} is needed (Linux 5.4)", abi::VERSION, abi::MINOR_MIN);
            return Err(Error::unsupported("FUSE", format!("{found}, {needed}")));
        }
        let flags = asked.flags & options.flags;
        let uring = offers_uring && takes_uring();
        match device.reply(unique, Ok(answer(&asked, flags, uring, options).as_bytes())) {
            Err(Errno::NOENT) => return Err(unmounted()),
            taken => taken.or_io(cannot)?,
        }
        return Ok(Features {
            no_open: flags & init::NO_OPEN_SUPPORT != 0,
            no_opendir: flags & init::NO_OPENDIR_SUPPORT != 0,
        });
    }
}

fn cannot() -> &'static str {
    "the kernel does not talk to us about the mount"
}

fn unmounted() -> Error {
    Error::failed("cannot mount: it was unmounted during the handshake")
}

fn answer(asked: &InitIn, flags: u32, uring: bool, options: &InitOptions) -> InitOut {
    let (extended, flags2) = if uring { (init::INIT_EXT, init::OVER_IO_URING) } else { (0, 0) };
    InitOut {
        major: abi::VERSION,
        minor: abi::MINOR,
        max_readahead: asked.max_readahead,
        flags: flags | extended,
        flags2,
        max_background: options.background_max,
        congestion_threshold: options.background_max / 4 * 3,
        max_write: options.write_len_max,
        time_gran: 1,
        max_pages: READ_PAGES_MAX,
        ..InitOut::default()
    }
}
