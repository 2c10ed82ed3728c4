//! The image as a site: the answer for each path.

use crate::address::{image_path, is_this_machine, of_directory};
use crate::body::{FilePieces, OnFault, PieceBody};
use crate::conditions::{Version, Wanted};
use crate::listing::{Form, Listing};
use crate::options::SiteOptions;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use packfs::{Error, ErrorKind, ImagePath, Inode, InodeId, InodeKind, Opened, Result};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Prevents scripts of a file in the image from running as this site's.
const FILE_POLICY: &str = "sandbox";
/// Listings have no scripts.
const LISTING_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; \
                              form-action 'none'; frame-ancestors 'none'";

pub(crate) struct Site {
    image: Arc<Opened>,
    options: Arc<SiteOptions>,
    on_fault: OnFault,
    is_local: bool,
}

pub(crate) type Answer = Response<PieceBody>;

impl Site {
    pub(crate) fn new(image: Arc<Opened>, options: SiteOptions, is_local: bool) -> Self {
        let options = Arc::new(options);
        let told = Arc::clone(&options);
        Site { image, options, on_fault: Arc::new(move |error| (told.on_fault)(error)), is_local }
    }

    /// Waits for the image.
    pub(crate) fn answer(&self, request: &Request<()>) -> Answer {
        let head = request.method() == Method::HEAD;
        if !head && request.method() != Method::GET {
            let mut refused = self.text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered\n");
            set(&mut refused, header::ALLOW, "GET, HEAD");
            return refused;
        }
        let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
        if self.is_local && !host.is_some_and(is_this_machine) {
            let text = "this server answers to localhost and addresses of this machine only\n";
            return self.text(StatusCode::MISDIRECTED_REQUEST, text);
        }
        let Some(path) = image_path(request.uri().path()) else {
            return self.text(StatusCode::BAD_REQUEST, "the path is not one of an image\n");
        };
        self.found(request, &path).unwrap_or_else(|error| self.failed(&error))
    }

    fn found(&self, request: &Request<()>, path: &ImagePath) -> Result<Answer> {
        let id = self.image.resolve(path.clone())?;
        let inode = self.image.volume().inode(id)?;
        let ends_in_slash = request.uri().path().ends_with('/');
        match inode.kind {
            InodeKind::Directory if ends_in_slash => self.directory(request, path, id, &inode),
            InodeKind::Directory => {
                let query = request.uri().query().map(|query| format!("?{query}"));
                let location = of_directory(path) + &query.unwrap_or_default();
                let mut moved = self.text(StatusCode::MOVED_PERMANENTLY, "a directory ends in a slash\n");
                set(&mut moved, header::LOCATION, &location);
                Ok(moved)
            }
            InodeKind::File { len } if !ends_in_slash => self.file(request, path, id, &inode, len),
            InodeKind::File { .. } => {
                Ok(self.text(StatusCode::NOT_FOUND, "a file does not end in a slash\n"))
            }
            other => {
                let text = format!("{path:?} is a {}, not a file\n", other.file_type().word());
                Ok(self.text(StatusCode::FORBIDDEN, &text))
            }
        }
    }

    fn version(&self, id: InodeId, inode: &Inode, form: &str) -> Version {
        let modified = u64::try_from(inode.meta.mtime.seconds).ok().and_then(|seconds| {
            // HTTP's dates have years of four digits.
            (seconds < 253_402_300_800).then(|| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
        });
        Version { etag: format!("\"{:016x}-{:x}{form}\"", self.options.identity, id.0), modified }
    }

    fn file(
        &self,
        request: &Request<()>,
        path: &ImagePath,
        id: InodeId,
        inode: &Inode,
        len: u64,
    ) -> Result<Answer> {
        let version = self.version(id, inode, "");
        let wanted = Wanted::of(request.headers(), &version, len);
        let (status, range) = match wanted {
            Wanted::Part(range) if request.method() == Method::GET => (StatusCode::PARTIAL_CONTENT, range),
            Wanted::Whole | Wanted::Part(_) => (StatusCode::OK, 0..len),
            _ => return Ok(self.without_content(&wanted, &version, len)),
        };
        let file = self.image.open_id(id)?;
        let body = if request.method() == Method::HEAD {
            PieceBody::omitted(Arc::clone(&self.on_fault))
        } else {
            let pieces = FilePieces { file, at: range.start, end: range.end };
            PieceBody::of_pieces(pieces, Some(range.end - range.start), Arc::clone(&self.on_fault))?
        };
        let mut answer = self.versioned(status, &version, body);
        set(&mut answer, header::CONTENT_LENGTH, &(range.end - range.start).to_string());
        set(&mut answer, header::CONTENT_TYPE, content_type(path));
        set(&mut answer, header::CONTENT_SECURITY_POLICY, FILE_POLICY);
        if status == StatusCode::PARTIAL_CONTENT {
            let range = format!("bytes {}-{}/{len}", range.start, range.end - 1);
            set(&mut answer, header::CONTENT_RANGE, &range);
        }
        Ok(answer)
    }

    fn directory(
        &self,
        request: &Request<()>,
        path: &ImagePath,
        id: InodeId,
        inode: &Inode,
    ) -> Result<Answer> {
        let form = form(request);
        let version = self.version(id, inode, if form == Form::Json { "-json" } else { "-html" });
        // A listing has no ranges, and its date is not that of its entries.
        let version = Version { modified: None, ..version };
        let wanted = Wanted::of(request.headers(), &version, 0);
        if matches!(wanted, Wanted::NotModified | Wanted::OtherVersion) {
            return Ok(self.without_content(&wanted, &version, 0));
        }
        let body = if request.method() == Method::HEAD {
            PieceBody::omitted(Arc::clone(&self.on_fault))
        } else {
            let (image, options) = (Arc::clone(&self.image), Arc::clone(&self.options));
            let listing = Listing::new(image, options, id, path.clone(), form);
            PieceBody::of_pieces(listing, None, Arc::clone(&self.on_fault))?
        };
        let mut answer = self.versioned(StatusCode::OK, &version, body);
        answer.headers_mut().remove(header::ACCEPT_RANGES);
        set(&mut answer, header::CONTENT_TYPE, form.content_type());
        set(&mut answer, header::CONTENT_SECURITY_POLICY, LISTING_POLICY);
        set(&mut answer, header::VARY, "Accept");
        Ok(answer)
    }

    fn without_content(&self, wanted: &Wanted, version: &Version, len: u64) -> Answer {
        let status = match wanted {
            Wanted::NotModified => StatusCode::NOT_MODIFIED,
            Wanted::BeyondEnd => StatusCode::RANGE_NOT_SATISFIABLE,
            _ => StatusCode::PRECONDITION_FAILED,
        };
        let body = PieceBody::of_bytes("", Arc::clone(&self.on_fault));
        let mut answer = self.versioned(status, version, body);
        if status == StatusCode::RANGE_NOT_SATISFIABLE {
            set(&mut answer, header::CONTENT_RANGE, &format!("bytes */{len}"));
        }
        answer
    }

    fn versioned(&self, status: StatusCode, version: &Version, body: PieceBody) -> Answer {
        let mut answer = Response::new(body);
        *answer.status_mut() = status;
        set(&mut answer, header::ETAG, &version.etag);
        if let Some(modified) = version.modified {
            set(&mut answer, header::LAST_MODIFIED, &httpdate::fmt_http_date(modified));
        }
        set(&mut answer, header::ACCEPT_RANGES, "bytes");
        // Another image may be served at this address later.
        set(&mut answer, header::CACHE_CONTROL, "no-cache");
        set(&mut answer, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
        answer
    }

    fn text(&self, status: StatusCode, text: &str) -> Answer {
        let mut answer = Response::new(PieceBody::of_bytes(text.to_owned(), Arc::clone(&self.on_fault)));
        *answer.status_mut() = status;
        set(&mut answer, header::CONTENT_TYPE, "text/plain; charset=utf-8");
        set(&mut answer, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
        answer
    }

    /// Replaces the answer after a panic.
    pub(crate) fn panicked() -> Answer {
        let mut answer = Response::new(PieceBody::of_bytes("", Arc::new(|_| {})));
        *answer.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        answer
    }

    fn failed(&self, error: &Error) -> Answer {
        let status = match error.kind() {
            // "Failed" is a path through a file, or a loop of links.
            ErrorKind::NotFound | ErrorKind::Failed => StatusCode::NOT_FOUND,
            _ => {
                (self.on_fault)(error);
                StatusCode::INTERNAL_SERVER_ERROR
            }
        };
        self.text(status, &format!("{error}\n"))
    }
}

/// JSON with `?json`, or if the client accepts JSON and not HTML.
fn form(request: &Request<()>) -> Form {
    let asks = request.uri().query().is_some_and(|query| query.split('&').any(|part| part == "json"));
    let accept = request.headers().get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let accepts = |kind| accept.is_some_and(|accept| accept.contains(kind));
    if asks || (accepts("application/json") && !accepts("text/html")) { Form::Json } else { Form::Html }
}

fn content_type(path: &ImagePath) -> &'static str {
    let name = path.file_name().map(|name| String::from_utf8_lossy(name.as_bytes()).into_owned());
    let extension = name.as_deref().and_then(|name| name.rsplit_once('.')).map(|(_, extension)| extension);
    let guess = extension.and_then(|extension| mime_guess::from_ext(extension).first_raw());
    match guess.unwrap_or("application/octet-stream") {
        "text/plain" => "text/plain; charset=utf-8",
        other => other,
    }
}

fn set(answer: &mut Answer, name: HeaderName, value: &str) {
    // All values are ASCII: paths in them are percent-encoded.
    if let Ok(value) = HeaderValue::from_str(value) {
        answer.headers_mut().insert(name, value);
    }
}
