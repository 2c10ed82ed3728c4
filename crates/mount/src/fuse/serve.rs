//! One serving thread: takes requests and answers them, and survives panics.

use super::abi::{InHeader, opcode};
use super::device::{Device, Request};
use super::room::Room;
use super::served::{Answer, AnswerBuffers, Served, tidy};
use packfs_core::{Result, ResultExt};
use rustix::io::Errno;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// Errors: `Io` if the connection to the kernel fails.
pub(crate) fn serve(mut device: Device, served: &Served, requests: &AtomicU64) -> Result<()> {
    let (mut buffers, mut contents) = (AnswerBuffers::default(), Vec::new());
    loop {
        let next = device.next().or_io(|| "cannot read requests from the kernel")?;
        let Some(Request { header, body: asked }) = next else { return Ok(()) };
        requests.fetch_add(1, Ordering::Relaxed);
        let busy = served.busy();
        let outcome = guarded(served, &header, asked, &mut buffers, &mut Room::Growing(&mut contents));
        match outcome {
            Ok(Answer::None) => {}
            Ok(Answer::Body) => device.answer(header.unique, Ok(&buffers.body)),
            Ok(Answer::Contents(range)) => {
                device.answer(header.unique, contents.get(range).ok_or(Errno::IO));
            }
            Err(error) => device.answer(header.unique, Err(error)),
        }
        if let Some(after) = buffers.after.take() {
            // A panic here only costs the optimization.
            let _ = catch_unwind(AssertUnwindSafe(|| served.afterwards(&device, after)));
        }
        drop(busy);
        if header.opcode == opcode::DESTROY {
            return Ok(());
        }
        buffers.tidy();
        tidy(&mut contents);
    }
}

/// A panic costs one request, not the mount.
pub(crate) fn guarded(
    served: &Served,
    header: &InHeader,
    asked: &[u8],
    buffers: &mut AnswerBuffers,
    room: &mut Room<'_>,
) -> Result<Answer, Errno> {
    let answer = AssertUnwindSafe(|| served.answer(header, asked, buffers, room));
    catch_unwind(answer).unwrap_or(Err(Errno::IO))
}
