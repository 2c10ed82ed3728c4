//! Upload of blobs and manifests to a registry.

use super::digest::Digest;
use super::manifest::Descriptor;
use super::registry::Registry;
use crate::answer::Answer;
use crate::failure::Failure;
use crate::object::Object;
use crate::transport::{Headers, Method};
use packfs_core::{Error, Image, Progress, Result, usize_of};
use std::sync::Arc;
use url::Url;

/// Most bytes of a request; longer blobs are sent in several.
const CHUNK_LEN: u64 = 16 << 20;
/// Attempts to begin the upload of a blob anew.
const RESTARTS_MAX: usize = 3;

/// Way that an upload came so far.
struct Upload {
    url: Url,
    sent: u64,
}

impl Registry {
    /// Uploads a blob: one up to 16 MiB at once, a longer one in chunks. A chunk that fails is sent
    /// again from the place that the registry tells.
    ///
    /// Errors: `Failed` if the registry refuses, `Io`, those of reading the image.
    pub(crate) fn put_blob(
        self: &Arc<Self>,
        descriptor: &Descriptor,
        image: &dyn Image,
        progress: &dyn Progress,
    ) -> Result<()> {
        let object = self.object(self.url("blobs/uploads/")?);
        let mut restarts = 0_usize;
        loop {
            let mut upload = self.begin(&object)?;
            while image.len() > CHUNK_LEN && upload.sent < image.len() {
                if progress.cancelled() {
                    return Err(Error::cancelled());
                }
                let before = upload.sent;
                self.chunk(&object, &mut upload, image)?;
                progress.advance(0, 0, upload.sent.saturating_sub(before));
                if upload.sent == 0 {
                    break;
                }
            }
            if image.len() <= CHUNK_LEN || upload.sent == image.len() {
                self.end(&object, &upload, &descriptor.digest, image)?;
                return Ok(());
            }
            restarts = restarts.saturating_add(1);
            if restarts > RESTARTS_MAX {
                return Err(Error::failed(format!(
                    "cannot upload a blob of {}: the registry lost it",
                    self.shown()
                )));
            }
        }
    }

    fn begin(self: &Arc<Self>, object: &Object) -> Result<Upload> {
        let url = self.url("blobs/uploads/")?;
        let action = || format!("cannot upload a blob of {}", self.shown());
        object.persist(action, |deadline| {
            let answer = self.send(Method::Post, &url, &Headers::new(), &[], deadline)?;
            if answer.status != 202 {
                return Err(self.refusal("upload a blob", answer));
            }
            Ok(Upload { url: self.place(&url, &answer)?, sent: 0 })
        })
    }

    fn place(&self, from: &Url, answer: &Answer) -> Result<Url, Failure> {
        self.next_url(from, answer).ok_or_else(|| {
            let why = "the registry tells no place (Location) for the upload, or one without TLS";
            Failure::Final(Error::failed(format!("cannot upload a blob of {}: {why}", self.shown())))
        })
    }

    /// Sends the next chunk; after a failure, the rest of it from where the registry is.
    fn chunk(self: &Arc<Self>, object: &Object, upload: &mut Upload, image: &dyn Image) -> Result<()> {
        let end = upload.sent.saturating_add(CHUNK_LEN).min(image.len());
        let mut is_unsure = false;
        object.persist(
            || format!("cannot upload a blob of {}", self.shown()),
            |deadline| {
                if is_unsure {
                    let answer = self.send(Method::Get, &upload.url, &Headers::new(), &[], deadline)?;
                    match (answer.status, sent(&answer)) {
                        (204, Some(sent)) if sent <= end => upload.sent = sent,
                        // The upload is begun anew.
                        _ => {
                            upload.sent = 0;
                            return Ok(());
                        }
                    }
                    upload.url = self.next_url(&upload.url, &answer).unwrap_or(upload.url.clone());
                }
                is_unsure = true;
                if upload.sent >= end {
                    return Ok(());
                }
                let mut body = vec![0; usize_of(end.saturating_sub(upload.sent))];
                image.read_exact_at(upload.sent, &mut body)?;
                let headers: Headers = vec![
                    ("content-type", "application/octet-stream".into()),
                    ("content-range", format!("{}-{}", upload.sent, end.saturating_sub(1))),
                ];
                let answer = self.send(Method::Patch, &upload.url, &headers, &body, deadline)?;
                match answer.status {
                    202 => {}
                    // The registry is elsewhere.
                    416 => return Err(Failure::temporary("the registry expects another part")),
                    _ => return Err(self.refusal("upload a blob", answer)),
                }
                upload.url = self.place(&upload.url, &answer)?;
                upload.sent = end;
                Ok(())
            },
        )
    }

    /// Ends an upload, with all bytes of a short blob.
    fn end(
        self: &Arc<Self>,
        object: &Object,
        upload: &Upload,
        digest: &Digest,
        image: &dyn Image,
    ) -> Result<()> {
        let mut body = vec![0; usize_of(image.len().saturating_sub(upload.sent))];
        image.read_exact_at(upload.sent, &mut body)?;
        let mut url = upload.url.clone();
        url.query_pairs_mut().append_pair("digest", &digest.to_string());
        let headers: Headers = vec![("content-type", "application/octet-stream".into())];
        let mut has_failed = false;
        object.persist(
            || format!("cannot upload a blob of {}", self.shown()),
            |deadline| {
                // An attempt whose answer was lost may have succeeded.
                if has_failed && self.has_blob(digest)? {
                    return Ok(());
                }
                has_failed = true;
                let answer = self.send(Method::Put, &url, &headers, &body, deadline)?;
                if answer.status == 201 { Ok(()) } else { Err(self.refusal("upload a blob", answer)) }
            },
        )
    }

    /// Stores a manifest or index under a tag or its digest.
    ///
    /// Errors: as [`Registry::put_blob`].
    pub(crate) fn put_manifest(self: &Arc<Self>, bytes: &[u8], media_type: &str, name: &str) -> Result<()> {
        let url = self.url(&format!("manifests/{name}"))?;
        let object = self.object(url.clone());
        let headers: Headers = vec![("content-type", media_type.into())];
        object.persist(
            || format!("cannot upload the manifest of {}", self.shown()),
            |deadline| {
                let answer = self.send(Method::Put, &url, &headers, bytes, deadline)?;
                match answer.status {
                    200..=202 => Ok(()),
                    _ => Err(self.refusal("upload the manifest", answer)),
                }
            },
        )
    }
}

/// Returns the number of bytes that a registry has, by the header `Range` of its answer.
fn sent(answer: &Answer) -> Option<u64> {
    let (first, last) = answer.header("range")?.trim_start_matches("bytes=").split_once('-')?;
    let last: u64 = last.parse().ok()?;
    // Some registries say 0-0 for none.
    (first == "0").then(|| if last == 0 { 0 } else { last.saturating_add(1) })
}
