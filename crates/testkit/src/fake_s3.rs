//! A store with the requests of S3 that an upload in parts takes, on this machine, with faults.

use crate::{RangeServer, Reply, Request};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The store; it holds one object, whatever its key.
pub struct FakeS3 {
    server: RangeServer,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Bytes of the object, and the mark of its upload.
    object: Option<(Vec<u8>, String)>,
    upload: Option<(BTreeMap<u16, Vec<u8>>, String)>,
}

/// Request of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A look for the object.
    Head,
    /// The beginning of an upload.
    Create,
    /// A part, by its number.
    Part(u16),
    /// The end of an upload.
    Complete,
    /// The removal of an upload.
    Abort,
    /// Anything else.
    Other,
}

/// Answer in place of that of the store.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The request has no effect.
    Instead(Reply),
    /// The request has its effect, but this is the answer.
    After(Reply),
}

impl FakeS3 {
    /// Starts a store without faults.
    pub fn new() -> Self {
        FakeS3::with(|_, _| None)
    }

    /// Starts a store that has a fault for some requests, told by their step and number.
    pub fn with(fault: impl Fn(Step, u64) -> Option<Fault> + Send + Sync + 'static) -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let ours = Arc::clone(&state);
        let server = RangeServer::with(Vec::new(), move |request| {
            let step = step(request);
            match fault(step, request.number) {
                Some(Fault::Instead(reply)) => reply,
                Some(Fault::After(reply)) => {
                    locked(&ours).answer(step, request);
                    reply
                }
                None => locked(&ours).answer(step, request),
            }
        });
        FakeS3 { server, state }
    }

    /// Returns the address, for `AWS_ENDPOINT_URL`.
    pub fn url(&self) -> String {
        self.server.url("")
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<(Step, Request)> {
        self.server.requests().into_iter().map(|request| (step(&request), request)).collect()
    }

    /// Returns the object, if there is one.
    pub fn object(&self) -> Option<Vec<u8>> {
        locked(&self.state).object.as_ref().map(|(bytes, _)| bytes.clone())
    }

    /// Puts an object there, as another client would.
    pub fn put(&self, bytes: &[u8]) {
        locked(&self.state).object = Some((bytes.to_vec(), String::new()));
    }

    /// True if there are parts of an upload.
    pub fn holds_parts(&self) -> bool {
        locked(&self.state).upload.is_some()
    }
}

impl Default for FakeS3 {
    fn default() -> Self {
        FakeS3::new()
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn query<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    let pairs = request.path.split_once('?').map(|(_, query)| query.split('&'));
    let mut pairs = pairs.into_iter().flatten().filter_map(|pair| pair.split_once('='));
    pairs.find(|(found, _)| *found == name).map(|(_, value)| value)
}

fn step(request: &Request) -> Step {
    let has = |name: &str| query(request, name).is_some();
    match request.method.as_str() {
        "HEAD" => Step::Head,
        "POST" if has("uploads") => Step::Create,
        "PUT" => match query(request, "partNumber").and_then(|number| number.parse().ok()) {
            Some(number) if query(request, "uploadId") == Some("ID") => Step::Part(number),
            _ => Step::Other,
        },
        "POST" if query(request, "uploadId") == Some("ID") => Step::Complete,
        "DELETE" if query(request, "uploadId") == Some("ID") => Step::Abort,
        _ => Step::Other,
    }
}

impl State {
    fn answer(&mut self, step: Step, request: &Request) -> Reply {
        const NAMESPACE: &str = "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"";
        let status = |status| Reply::Status(status, vec![], "<Error/>".into());
        match step {
            Step::Head => match &self.object {
                Some((_, mark)) => {
                    Reply::Status(200, vec![("x-amz-meta-packfs-upload", mark.clone())], String::new())
                }
                None => Reply::Status(404, vec![], String::new()),
            },
            Step::Create => {
                let mark = request.header("x-amz-meta-packfs-upload").unwrap_or_default().to_owned();
                self.upload = Some((BTreeMap::new(), mark));
                let body = format!(
                    "<InitiateMultipartUploadResult {NAMESPACE}><Bucket>b</Bucket><UploadId>ID</UploadId>\
                     </InitiateMultipartUploadResult>"
                );
                Reply::Status(200, vec![], body)
            }
            Step::Part(number) => match &mut self.upload {
                Some((parts, _)) => {
                    parts.insert(number, request.body.clone());
                    Reply::Status(200, vec![("ETag", format!("\"{number}\""))], String::new())
                }
                None => status(404),
            },
            Step::Complete => {
                if self.upload.is_none() {
                    return status(404);
                }
                if self.object.is_some() && request.header("if-none-match") == Some("*") {
                    return status(412);
                }
                let Some((parts, mark)) = self.upload.take() else { return status(404) };
                self.object = Some((parts.into_values().flatten().collect(), mark));
                let body = format!(
                    "<CompleteMultipartUploadResult {NAMESPACE}><ETag>\"e\"</ETag>\
                     </CompleteMultipartUploadResult>"
                );
                Reply::Status(200, vec![], body)
            }
            Step::Abort if self.upload.take().is_some() => Reply::Status(204, vec![], String::new()),
            Step::Abort => status(404),
            Step::Other => status(400),
        }
    }
}
