//! A server with the writing interface of S3, on this machine, with faults on request.

use crate::{RangeServer, Reply, Request, Served};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Fault of a request.
#[derive(Clone, Debug)]
pub enum BucketFault {
    /// This answer, and nothing is done.
    Refused(Reply),
    /// The request is done, and the connection ends without an answer.
    Lost,
}

/// Objects by their paths, such as `/bucket/key`, and unfinished uploads by their names.
#[derive(Default)]
struct Objects {
    whole: BTreeMap<String, Vec<u8>>,
    /// Marks of objects, which their uploads gave to them.
    marks: BTreeMap<String, String>,
    uploads: BTreeMap<String, Upload>,
    count: u64,
}

/// Upload that is neither completed nor removed.
#[derive(Default)]
struct Upload {
    mark: String,
    parts: BTreeMap<u32, Vec<u8>>,
}

/// Header by which packfs knows an object as that of its own upload.
const MARK: &str = "x-amz-meta-packfs-upload";

/// The server; it ends when it is dropped. It has every bucket but `none`.
pub struct BucketServer {
    server: RangeServer,
    objects: Arc<Mutex<Objects>>,
}

impl BucketServer {
    /// Serves objects, none at first, and asks for each request whether it fails.
    pub fn new(fault: impl Fn(&Request) -> Option<BucketFault> + Send + Sync + 'static) -> Self {
        let objects: Arc<Mutex<Objects>> = Arc::default();
        let ours = Arc::clone(&objects);
        let server = RangeServer::with(Vec::new(), move |request| {
            let fault = fault(request);
            if let Some(BucketFault::Refused(reply)) = fault {
                return reply;
            }
            let reply = ours.lock().unwrap_or_else(PoisonError::into_inner).answer(request);
            if fault.is_some() { Reply::Drop } else { reply }
        });
        BucketServer { server, objects }
    }

    /// Returns the address for `AWS_ENDPOINT_URL`.
    pub fn endpoint(&self) -> String {
        self.server.url("")
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.server.requests()
    }

    /// Returns the objects by their paths, such as `/bucket/key`.
    pub fn objects(&self) -> BTreeMap<String, Vec<u8>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner).whole.clone()
    }

    /// Stores an object.
    pub fn put(&self, path: &str, bytes: Vec<u8>) {
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        objects.whole.insert(path.into(), bytes);
        objects.marks.remove(path);
    }

    /// Returns the number of uploads that were neither completed nor removed.
    pub fn unfinished(&self) -> usize {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner).uploads.len()
    }
}

fn status(status: u16, code: &str) -> Reply {
    let body = if code.is_empty() { String::new() } else { format!("<Error><Code>{code}</Code></Error>") };
    Reply::Status(status, vec![], body)
}

impl Objects {
    fn answer(&mut self, request: &Request) -> Reply {
        let (path, query) = request.path.split_once('?').unwrap_or((request.path.as_str(), ""));
        let value = |name: &str| {
            query
                .split('&')
                .find_map(|pair| pair.split_once('=').filter(|pair| pair.0 == name))
                .map(|it| it.1)
        };
        if path.starts_with("/none/") {
            return status(404, "NoSuchBucket");
        }
        let only_new = request.header("if-none-match") == Some("*");
        let is_there = only_new && self.whole.contains_key(path);
        let mark = request.header(MARK).unwrap_or_default().to_owned();
        match (request.method.as_str(), value("uploadId")) {
            ("GET" | "HEAD", _) => self.read(request, path),
            ("PUT" | "POST", _) if is_there => status(412, "PreconditionFailed"),
            ("PUT", None) => {
                self.whole.insert(path.into(), request.body.clone());
                self.marks.insert(path.into(), mark);
                status(200, "")
            }
            ("POST", None) => {
                self.count += 1;
                let id = format!("upload-{}", self.count);
                self.uploads.insert(id.clone(), Upload { mark, ..Upload::default() });
                let body = format!("<Result><UploadId>{id}</UploadId></Result>");
                Reply::Status(200, vec![], body)
            }
            ("DELETE", None) => {
                self.whole.remove(path);
                status(204, "")
            }
            (method, Some(id)) => match (method, self.uploads.get_mut(id)) {
                (_, None) => status(404, "NoSuchUpload"),
                ("PUT", Some(upload)) => {
                    let number = value("partNumber").and_then(|number| number.parse().ok()).unwrap();
                    match request
                        .header("x-amz-copy-source")
                        .map(|source| copied(&self.whole, request, source))
                    {
                        None => {
                            upload.parts.insert(number, request.body.clone());
                            Reply::Status(200, vec![("ETag", format!("\"part-{number}\""))], String::new())
                        }
                        Some(Ok(bytes)) => {
                            upload.parts.insert(number, bytes);
                            let body = format!(
                                "<CopyPartResult><ETag>&quot;part-{number}&quot;</ETag></CopyPartResult>"
                            );
                            Reply::Status(200, vec![], body)
                        }
                        Some(Err(reply)) => reply,
                    }
                }
                ("POST", Some(_)) => self.join(request, path, id),
                _ => {
                    self.uploads.remove(id);
                    status(204, "")
                }
            },
            _ => status(405, "MethodNotAllowed"),
        }
    }

    fn read(&self, request: &Request, path: &str) -> Reply {
        let Some(bytes) = self.whole.get(path) else { return status(404, "NoSuchKey") };
        if request.method == "HEAD" {
            let mark = self.marks.get(path).cloned().unwrap_or_default();
            return Reply::Status(200, vec![(MARK, mark)], String::new());
        }
        let etag = Some(etag(bytes));
        Reply::Of(Served { bytes: Arc::new(bytes.clone()), etag, modified: None })
    }

    /// Joins the parts that the request names.
    fn join(&mut self, request: &Request, path: &str, id: &str) -> Reply {
        let body = String::from_utf8(request.body.clone()).unwrap();
        let Upload { mark, parts } = self.uploads.remove(id).unwrap_or_default();
        let short = parts.values().rev().skip(1).any(|part| part.len() < 5 << 20);
        if short {
            return status(400, "EntityTooSmall");
        }
        let named = parts.keys().map(|number| {
            format!("<Part><PartNumber>{number}</PartNumber><ETag>\"part-{number}\"</ETag></Part>")
        });
        let named: String = named.collect();
        if !body.contains(&named) {
            return status(400, "InvalidPart");
        }
        self.whole.insert(path.into(), parts.into_values().flatten().collect());
        self.marks.insert(path.into(), mark);
        let body = "<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>";
        Reply::Status(200, vec![], body.into())
    }
}

fn etag(bytes: &[u8]) -> String {
    let sum = bytes.iter().fold(0_u64, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    format!("\"{sum:x}-{}\"", bytes.len())
}

/// Returns the range that a request has copied of an object.
fn copied(objects: &BTreeMap<String, Vec<u8>>, request: &Request, source: &str) -> Result<Vec<u8>, Reply> {
    let bytes = objects.get(source).ok_or_else(|| status(404, "NoSuchKey"))?;
    if request.header("x-amz-copy-source-if-match").is_some_and(|tag| tag != etag(bytes)) {
        return Err(status(412, "PreconditionFailed"));
    }
    let range = request.header("x-amz-copy-source-range").and_then(|range| range.strip_prefix("bytes="));
    let (start, last) = range.and_then(|range| range.split_once('-')).unwrap();
    let (start, last): (usize, usize) = (start.parse().unwrap(), last.parse().unwrap());
    bytes.get(start..=last).map(<[u8]>::to_vec).ok_or_else(|| status(400, "InvalidArgument"))
}
