//! One thread that serves: takes a request, answers it, again. Whatever happens, it goes on.

use super::abi::{InHeader, opcode};
use super::device::{Device, Request};
use super::served::{Answer, Room, Served};
use packfs_core::{Result, ResultExt};
use rustix::io::Errno;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// Serves until nothing is mounted any more.
///
/// Errors: `Io` if the kernel stops talking.
pub(crate) fn serve(mut device: Device, served: &Served, requests: Option<&AtomicU64>) -> Result<()> {
    let mut room = Room::default();
    loop {
        let next = device.next().or_io(|| "the kernel does not talk to us about the mount any more")?;
        let Some(Request { header, body: asked }) = next else { return Ok(()) };
        if let Some(requests) = requests {
            requests.fetch_add(1, Ordering::Relaxed);
        }
        let outcome = guarded(served, &header, asked, &mut room);
        match outcome {
            Ok(Answer::None) => {}
            Ok(Answer::Body) => device.answer(header.unique, Ok(&room.body)),
            Ok(Answer::Contents(len)) => {
                device.answer(header.unique, room.contents.get(..len).ok_or(Errno::IO));
            }
            Err(error) => device.answer(header.unique, Err(error)),
        }
        if header.opcode == opcode::DESTROY {
            return Ok(());
        }
        room.tidy();
    }
}

/// A mistake of ours costs one request, not the mount.
fn guarded(served: &Served, header: &InHeader, asked: &[u8], room: &mut Room) -> Result<Answer, Errno> {
    let answer = AssertUnwindSafe(|| served.answer(header, asked, room));
    catch_unwind(answer).unwrap_or(Err(Errno::IO))
}
