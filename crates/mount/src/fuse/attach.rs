//! Attaches FUSE mounts: by `mount(2)` if permitted, else by the set-user-id program `fusermount3`.

use super::{FuseOptions, device};
use packfs_core::{Error, Result, ResultExt, one_line};
use packfs_format::Inode;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::ffi::{CString, OsString};
use std::io::{IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

/// The program that mounts for unprivileged users.
const HELPER: &str = "fusermount3";

/// Returns the descriptor for requests.
pub(crate) fn attach(at: &Path, root: &Inode, options: &FuseOptions) -> Result<OwnedFd> {
    match direct(at, root, options) {
        Ok(fd) => Ok(fd),
        Err(error @ (Errno::PERM | Errno::ACCESS)) => by_helper(at, options)
            .map_err(|helper| if is_missing(&helper) { explained(error, helper) } else { helper }),
        Err(error @ (Errno::NOENT | Errno::NODEV | Errno::NXIO)) => {
            let error = Error::io(format!("cannot open {:?}", device::PATH), error.into());
            Err(error.hint("the kernel has no FUSE; as root: modprobe fuse"))
        }
        Err(error) => Err(Error::io(format!("cannot mount on {at:?}"), error.into())),
    }
}

fn is_missing(error: &Error) -> bool {
    error.io_source().is_some_and(|source| source.kind() == std::io::ErrorKind::NotFound)
}

fn explained(refused: Errno, helper: Error) -> Error {
    let refused = std::io::Error::from(refused);
    helper.hint(format!("without it only root can mount (mount: {refused}); install the package fuse3"))
}

fn direct(at: &Path, root: &Inode, options: &FuseOptions) -> rustix::io::Result<OwnedFd> {
    let fd = device::open()?;
    let mode = root.kind.file_type().mode_bits() | u32::from(root.meta.mode);
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let mut data = format!("fd={},rootmode={mode:o},user_id={uid},group_id={gid}", fd.as_raw_fd());
    for word in shared_words(options) {
        data = data + "," + word;
    }
    let data = CString::new(data).map_err(|_| Errno::INVAL)?;
    let fs_type = OsString::from_vec([b"fuse.", options.subtype.as_bytes()].concat());
    rustix::mount::mount(&options.source, at, fs_type, options.flags.host(), Some(data.as_c_str()))?;
    Ok(fd)
}

fn shared_words(options: &FuseOptions) -> impl Iterator<Item = &'static str> {
    [(options.allow_other, "allow_other"), (options.default_permissions, "default_permissions")]
        .into_iter()
        .filter_map(|(wanted, word)| wanted.then_some(word))
}

/// The helper sends the open device through the socket in `_FUSE_COMMFD`.
fn by_helper(at: &Path, options: &FuseOptions) -> Result<OwnedFd> {
    let cannot = || format!("cannot run {HELPER}");
    let (ours, theirs) = UnixStream::pair().or_io(cannot)?;
    let mut command = Command::new(HELPER);
    command.arg("-o").arg(helper_words(options)).arg("--").arg(at).env("_FUSE_COMMFD", "0");
    let mut child =
        command.stdin(Stdio::from(OwnedFd::from(theirs))).stderr(Stdio::piped()).spawn().or_io(cannot)?;
    // Only the child may hold the other end of the socket, or a failure of the child would never be
    // noticed.
    drop(command);
    let received = receive(&ours);
    let mut said = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        let _ = stderr.read_to_string(&mut said);
    }
    let status = child.wait().or_io(cannot)?;
    match received {
        Ok(Some(fd)) if status.success() => Ok(fd),
        Err(error) => Err(Error::io(cannot(), error.into())),
        Ok(_) => Err(refusal(at, &one_line(&said))),
    }
}

fn refusal(at: &Path, said: &str) -> Error {
    let said = said.strip_prefix("fusermount3: ").unwrap_or(said);
    let error = Error::failed(format!("cannot mount on {at:?}: {HELPER}: {said}"));
    if said.contains("allow_other") {
        return error.hint("root can permit it by the line user_allow_other in /etc/fuse.conf");
    }
    error
}

fn helper_words(options: &FuseOptions) -> OsString {
    let mut words: Vec<&str> = options.flags.words().collect();
    words.extend(shared_words(options));
    let mut text = words.join(",").into_bytes();
    for (key, value) in [(",subtype=", options.subtype.as_os_str()), (",fsname=", options.source.as_os_str())]
    {
        text.extend_from_slice(key.as_bytes());
        for &byte in value.as_bytes() {
            // The two bytes that are special to the helper.
            if matches!(byte, b',' | b'\\') {
                text.push(b'\\');
            }
            text.push(byte);
        }
    }
    OsString::from_vec(text)
}

fn receive(socket: &UnixStream) -> rustix::io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    loop {
        let mut into = [IoSliceMut::new(&mut byte)];
        match recvmsg(socket, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Ok(_) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    let fds = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    Ok(fds)
}
