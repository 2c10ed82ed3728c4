//! A connection whose client must accept data in time.

use hyper::rt::{Read, ReadBufCursor, Write};
use std::future::Future;
use std::io::{ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Sleep, sleep};

/// Fails once no byte could be written for some time.
pub(crate) struct Impatient<T> {
    io: T,
    patience: Duration,
    end: Option<Pin<Box<Sleep>>>,
}

impl<T> Impatient<T> {
    pub(crate) fn new(io: T, patience: Duration) -> Self {
        Impatient { io, patience, end: None }
    }
}

impl<T: Unpin> Impatient<T> {
    fn in_time<R>(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut T>, &mut Context<'_>) -> Poll<Result<R>>,
    ) -> Poll<Result<R>> {
        let step = write(Pin::new(&mut self.io), context);
        if step.is_ready() {
            self.end = None;
            return step;
        }
        let end = self.end.get_or_insert_with(|| Box::pin(sleep(self.patience)));
        end.as_mut().poll(context).map(|()| Err(ErrorKind::TimedOut.into()))
    }
}

impl<T: Read + Unpin> Read for Impatient<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buf)
    }
}

impl<T: Write + Unpin> Write for Impatient<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &[u8]) -> Poll<Result<usize>> {
        self.in_time(context, |io, context| io.poll_write(context, buf))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.in_time(context, Write::poll_flush)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.in_time(context, Write::poll_shutdown)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        self.in_time(context, |io, context| io.poll_write_vectored(context, bufs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    /// Takes the bytes of the first write, and none later.
    struct Full(bool);

    impl Write for Full {
        fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<Result<usize>> {
            if std::mem::replace(&mut self.0, true) { Poll::Pending } else { Poll::Ready(Ok(buf.len())) }
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn a_client_that_takes_nothing_is_left() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let mut io = Impatient::new(Full(false), Duration::from_millis(1));
            let mut write = async || poll_fn(|context| Pin::new(&mut io).poll_write(context, b"ab")).await;
            assert_eq!(write().await.unwrap(), 2);
            assert_eq!(write().await.unwrap_err().kind(), ErrorKind::TimedOut);
        });
    }
}
