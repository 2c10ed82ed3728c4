//! Bodies that are read from an image piece by piece, whenever the connection takes the next one.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use packfs::FileReader;
use packfs::{Error, Result};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::task::JoinHandle;

/// Bytes of a file that are sent at a time.
const PIECE_LEN: u64 = 256 << 10;

/// Origin of the pieces of a body.
pub(crate) trait Pieces: Send + 'static {
    /// Returns the next piece; `None` at the end. It may wait for the image.
    fn next(&mut self) -> Result<Option<Bytes>>;
}

/// Receiver of errors that end a body early, which a client sees as a short one.
pub(crate) type OnFault = Arc<dyn Fn(&Error) + Send + Sync>;

type Step = (Box<dyn Pieces>, Result<Option<Bytes>>);

/// A body.
pub(crate) struct PieceBody {
    /// Piece that was read before the answer began, so that a fault could still change it.
    first: Option<Bytes>,
    /// Origin of further pieces, while no thread has it.
    pieces: Option<Box<dyn Pieces>>,
    running: Option<JoinHandle<Step>>,
    /// Length of the rest, if it is known.
    len: Option<u64>,
    on_fault: OnFault,
}

impl PieceBody {
    /// Creates a body of bytes in memory.
    pub(crate) fn of_bytes(bytes: impl Into<Bytes>, on_fault: OnFault) -> Self {
        let first = bytes.into();
        let len = Some(first.len() as u64);
        PieceBody { first: Some(first), pieces: None, running: None, len, on_fault }
    }

    /// Creates the body of an answer to HEAD, whose length is that of another answer.
    pub(crate) fn omitted(on_fault: OnFault) -> Self {
        PieceBody { first: None, pieces: None, running: None, len: None, on_fault }
    }

    /// Creates a body of pieces, of `len` bytes in all if that is known.
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

/// Part of a file.
pub(crate) struct FilePieces {
    /// The file.
    pub file: FileReader,
    /// Offset of the next piece.
    pub at: u64,
    /// End of the part.
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
