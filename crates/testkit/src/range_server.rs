//! A server of one object by HTTP ranges, on this machine, with faults on request.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Request as it came.
#[derive(Clone, Debug)]
pub struct Request {
    /// Number of requests before it, on all connections.
    pub number: u64,
    /// Method, such as `GET`.
    pub method: String,
    /// Path with its query.
    pub path: String,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// Body, if it has one.
    pub body: Vec<u8>,
}

impl Request {
    /// Returns the value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}

/// Answer of the server.
#[derive(Clone, Debug)]
pub enum Reply {
    /// The range, on the conditions of the request.
    Right,
    /// The range of this object.
    Of(Served),
    /// The whole object with status 200.
    Whole,
    /// The whole object with status 200, ended by the end of the connection alone.
    Unbounded,
    /// Status, further headers, and body.
    Status(u16, Vec<(&'static str, String)>, String),
    /// The range, after whose first bytes the connection ends.
    Short(usize),
    /// The range, which is shorter than it says, on a connection that goes on.
    ShortLength(usize),
    /// An end of the connection without an answer.
    Drop,
    /// No answer for so long, then the end of the connection.
    Silent(Duration),
    /// The right range, with this `Content-Range`.
    RangeHeader(String),
    /// The bytes at another place, with the headers of the right range and another `ETag`.
    Other(String),
    /// The right range with a further header.
    With(&'static str, String),
}

/// Object and its version.
#[derive(Clone, Debug)]
pub struct Served {
    /// Bytes of the object.
    pub bytes: Arc<Vec<u8>>,
    /// `ETag` with its quotes, if one is sent.
    pub etag: Option<String>,
    /// `Last-Modified`, if one is sent.
    pub modified: Option<String>,
}

type Behavior = dyn Fn(&Request) -> Reply + Send + Sync;

struct Shared {
    served: Mutex<Served>,
    behavior: Box<Behavior>,
    log: Mutex<Vec<Request>>,
    count: AtomicU64,
    is_ended: AtomicBool,
}

/// The server; it ends when it is dropped.
pub struct RangeServer {
    shared: Arc<Shared>,
    address: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

impl RangeServer {
    /// Serves bytes with an `ETag`.
    pub fn new(bytes: Vec<u8>) -> Self {
        RangeServer::with(bytes, |_| Reply::Right)
    }

    /// Serves bytes with an `ETag`, and asks for each request how to answer.
    pub fn with(bytes: Vec<u8>, behavior: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let served = Served { bytes: Arc::new(bytes), etag: Some("\"1\"".into()), modified: None };
        let shared = Arc::new(Shared {
            served: Mutex::new(served),
            behavior: Box::new(behavior),
            log: Mutex::default(),
            count: AtomicU64::new(0),
            is_ended: AtomicBool::new(false),
        });
        let ours = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if ours.is_ended.load(Ordering::Relaxed) {
                    return;
                }
                let (ours, Ok(stream)) = (Arc::clone(&ours), stream) else { continue };
                std::thread::spawn(move || {
                    // A client may leave at any time.
                    let _ = ours.serve(stream);
                });
            }
        });
        RangeServer { shared, address, thread: Some(thread) }
    }

    /// Returns the URL of a path, such as `/image`.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the URL of a path with something before the host, such as `user:password@`.
    pub fn url_as(&self, user: &str, path: &str) -> String {
        format!("http://{user}@{}{path}", self.address)
    }

    /// Changes the object or its version.
    pub fn change(&self, change: impl FnOnce(&mut Served)) {
        change(&mut self.shared.served.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Forgets the requests so far.
    pub fn forget(&self) {
        self.shared.log.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Drop for RangeServer {
    fn drop(&mut self) {
        self.shared.is_ended.store(true, Ordering::Relaxed);
        // Wakes the thread.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let mut input = BufReader::new(stream.try_clone()?);
        let mut output = stream;
        while let Some(request) = self.read(&mut input)? {
            self.log.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
            if !self.answer(&request, &mut output)? {
                let _ = output.shutdown(std::net::Shutdown::Both);
                return Ok(());
            }
        }
        Ok(())
    }

    fn read(&self, input: &mut BufReader<TcpStream>) -> std::io::Result<Option<Request>> {
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut words = line.split_whitespace().map(str::to_owned);
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            input.read_line(&mut line)?;
            match line.trim_end().split_once(':') {
                Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.trim().to_owned())),
                None => break,
            }
        }
        let len =
            headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, len)| len.parse().ok());
        let mut body = vec![0; len.unwrap_or(0)];
        input.read_exact(&mut body)?;
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        Ok(Some(Request { number, method, path, headers, body }))
    }

    /// Answers; returns false if the connection ends.
    fn answer(&self, request: &Request, output: &mut TcpStream) -> std::io::Result<bool> {
        let reply = (self.behavior)(request);
        let served = match &reply {
            Reply::Of(served) => served.clone(),
            _ => self.served.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        };
        match &reply {
            Reply::Drop => return Ok(false),
            Reply::Silent(time) => {
                std::thread::sleep(*time);
                return Ok(false);
            }
            Reply::Status(status, headers, body) => {
                let more: String =
                    headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
                // Bytes after the headers would be taken for the next answer.
                let sent = if request.method == "HEAD" { "" } else { body };
                write(output, *status, &more, sent.as_bytes(), body.len())?;
                return Ok(true);
            }
            _ => {}
        }
        let mut headers = String::new();
        let etag = if let Reply::Other(etag) = &reply { Some(etag) } else { served.etag.as_ref() };
        let validators = [("ETag", etag), ("Last-Modified", served.modified.as_ref())];
        for (name, value) in validators.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            headers.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(status) = refused(request, &served) {
            write(output, status, &headers, b"", 0)?;
            return Ok(true);
        }
        let len = served.bytes.len() as u64;
        let range = request.header("range").and_then(|range| parse_range(range, len));
        if matches!(reply, Reply::Whole | Reply::Unbounded) || request.header("range").is_none() {
            return whole(output, &reply, &headers, &served.bytes);
        }
        let Some(range) = range else {
            write(output, 416, &format!("{headers}Content-Range: bytes */{len}\r\n"), b"", 0)?;
            return Ok(true);
        };
        let place = format!("bytes {}-{}/{len}", range.start, range.end - 1);
        let place = if let Reply::RangeHeader(wrong) = &reply { wrong } else { &place };
        headers.push_str(&format!("Content-Range: {place}\r\n"));
        let body = &served.bytes[range.start as usize..range.end as usize];
        match reply {
            Reply::Short(most) => {
                write(output, 206, &headers, &body[..most.min(body.len())], body.len())?;
                return Ok(most >= body.len());
            }
            Reply::ShortLength(most) => {
                let body = &body[..most.min(body.len())];
                write(output, 206, &headers, body, body.len())?;
            }
            Reply::Other(_) => {
                let other: Vec<u8> = body.iter().map(|byte| !byte).collect();
                write(output, 206, &headers, &other, other.len())?;
            }
            Reply::With(name, value) => {
                write(output, 206, &format!("{headers}{name}: {value}\r\n"), body, body.len())?;
            }
            _ => write(output, 206, &headers, body, body.len())?,
        }
        Ok(true)
    }
}

/// Returns the status if a condition of the request fails.
fn refused(request: &Request, served: &Served) -> Option<u16> {
    let fails = |name: &str, value: Option<&String>| {
        request.header(name).is_some_and(|it| Some(it) != value.map(String::as_str))
    };
    if fails("if-match", served.etag.as_ref()) || fails("if-unmodified-since", served.modified.as_ref()) {
        return Some(412);
    }
    let is_known = request.header("if-none-match").is_some_and(|it| Some(it) == served.etag.as_deref());
    is_known.then_some(304)
}

fn parse_range(text: &str, len: u64) -> Option<Range<u64>> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let range = match (first.parse::<u64>(), last.parse::<u64>()) {
        (Ok(first), Ok(last)) => first..len.min(last + 1),
        (Ok(first), _) => first..len,
        (_, Ok(count)) => len.saturating_sub(count)..len,
        _ => return None,
    };
    Some(range).filter(|range| !range.is_empty())
}

fn write(output: &mut TcpStream, status: u16, headers: &str, body: &[u8], len: usize) -> std::io::Result<()> {
    let length =
        if matches!(status, 204 | 304) { String::new() } else { format!("Content-Length: {len}\r\n") };
    output.write_all(format!("HTTP/1.1 {status} X\r\n{headers}{length}\r\n").as_bytes())?;
    output.write_all(body)
}

/// Answers with the object from its start on; false where the connection ends.
fn whole(output: &mut TcpStream, reply: &Reply, headers: &str, bytes: &[u8]) -> std::io::Result<bool> {
    match reply {
        Reply::Short(most) => {
            write(output, 200, headers, &bytes[..*most.min(&bytes.len())], bytes.len())?;
            Ok(*most >= bytes.len())
        }
        Reply::Unbounded => {
            write!(output, "HTTP/1.1 200 OK\r\n{headers}Connection: close\r\n\r\n")?;
            output.write_all(bytes)?;
            Ok(false)
        }
        _ => write(output, 200, headers, bytes, bytes.len()).map(|()| true),
    }
}
