//! Bodies that are read from an image piece by piece, as fast as the connection accepts them.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use packfs::FileReader;
use packfs::{Error, Result};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::task::JoinHandle;

const PIECE_LEN: u64 = 256 << 10;

pub(crate) trait Pieces: Send + 'static {
    /// `None` at the end. May wait for the image.
    fn next(&mut self) -> Result<Option<Bytes>>;
}

/// Errors that end a body early appear to a client only as a short body.
pub(crate) type OnFault = Arc<dyn Fn(&Error) + Send + Sync>;

type Step = (Box<dyn Pieces>, Result<Option<Bytes>>);

pub(crate) struct PieceBody {
    /// Read before the answer began, so that a fault could still change it.
    first: Option<Bytes>,
    /// `None` while a thread has it.
    pieces: Option<Box<dyn Pieces>>,
    running: Option<JoinHandle<Step>>,
    len: Option<u64>,
    on_fault: OnFault,
}

impl PieceBody {
    pub(crate) fn of_bytes(bytes: impl Into<Bytes>, on_fault: OnFault) -> Self {
        let first = bytes.into();
        let len = Some(first.len() as u64);
        PieceBody { first: Some(first), pieces: None, running: None, len, on_fault }
    }

    /// The body of an answer to HEAD, with the length of the omitted one.
    pub(crate) fn omitted(on_fault: OnFault) -> Self {
        PieceBody { first: None, pieces: None, running: None, len: None, on_fault }
    }

    /// `len` is the total length, if known.
    ///
    /// Errors: those of the first piece.
    pub(crate) fn of_pieces(mut pieces: impl Pieces, len: Option<u64>, on_fault: OnFault) -> Result<Self> {
        let first = pieces.next()?;
        Ok(PieceBody { first, pieces: Some(Box::new(pieces)), running: None, len, on_fault })
    }
}

impl Body for PieceBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>>>> {
        let this = &mut *self;
        let piece = match this.first.take().filter(|first| !first.is_empty()) {
            Some(first) => Some(first),
            None => {
                let running = match (&mut this.running, this.pieces.take()) {
                    (Some(running), _) => running,
                    (running, Some(mut pieces)) => running.insert(tokio::task::spawn_blocking(move || {
                        let piece = pieces.next();
                        (pieces, piece)
                    })),
                    (None, None) => return Poll::Ready(None),
                };
                let step = ready!(Pin::new(running).poll(context));
                this.running = None;
                match step {
                    Ok((pieces, Ok(Some(piece)))) => {
                        this.pieces = Some(pieces);
                        Some(piece)
                    }
                    Ok((_, Ok(None))) => None,
                    Ok((_, Err(error))) => {
                        (this.on_fault)(&error);
                        return Poll::Ready(Some(Err(error)));
                    }
                    Err(_) => return Poll::Ready(Some(Err(Error::failed("a reading thread has failed")))),
                }
            }
        };
        if let (Some(len), Some(piece)) = (&mut this.len, &piece) {
            *len = len.saturating_sub(piece.len() as u64);
        }
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn size_hint(&self) -> SizeHint {
        self.len.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

pub(crate) struct FilePieces {
    pub file: FileReader,
    pub at: u64,
    pub end: u64,
}

impl Pieces for FilePieces {
    fn next(&mut self) -> Result<Option<Bytes>> {
        let len = self.end.saturating_sub(self.at).min(PIECE_LEN);
        if len == 0 {
            return Ok(None);
        }
        // At most PIECE_LEN.
        let mut piece = vec![0; len as usize];
        let read = self.file.read_at(self.at, &mut piece)?;
        if (read as u64) < len {
            return Err(Error::failed(format!("a file ends at byte {} instead of {}", self.at, self.end)));
        }
        self.at += len;
        Ok(Some(piece.into()))
    }
}
