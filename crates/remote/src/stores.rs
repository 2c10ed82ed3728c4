//! Stores by the scheme of a URL: a row each.

use crate::download::Download;
use crate::image::RemoteImage;
use crate::options::RemoteOptions;
use crate::s3_folder::S3Folder;
use packfs_core::schemes::{HTTP, HTTPS, S3};
use packfs_core::{Error, Image, ImageReader, Place, Result, Store};
use std::io::Read;
use std::sync::Arc;

/// Image, and a warning about its place.
type Warned = (Arc<dyn Image>, Option<String>);

/// Reader of an object from start to end.
type Reader = Box<dyn Read + Send>;

/// Folder of an object, and the name of the object in it.
type InFolder = (Box<dyn Store>, String);

/// Function that opens a place.
type Open<T> = fn(Place<'_>, RemoteOptions) -> Result<T>;

/// Kind of store.
struct Row {
    /// In lower case.
    schemes: &'static [&'static str],
    /// Forms of the URL of an object, for hints.
    form: &'static str,
    /// Opens an object for reads of its ranges.
    image: Open<Warned>,
    /// Opens an object for a read from start to end; `None`: by its ranges.
    reader: Option<Open<Reader>>,
    /// Opens folders of objects, if objects can be created.
    store: Option<Opening>,
}

/// Functions that open a folder of objects as a store. No request is sent.
struct Opening {
    /// Opens a folder.
    folder: Open<Box<dyn Store>>,
    /// Opens the folder of an object, and returns the name of the object in it.
    object: Open<InFolder>,
}

const ROWS: &[Row] = &[
    Row {
        schemes: &[HTTP, HTTPS],
        form: "http://, https://",
        image: remote_image,
        reader: Some(download),
        store: None,
    },
    Row {
        schemes: &[S3],
        form: "s3://BUCKET/KEY",
        image: remote_image,
        reader: Some(download),
        store: Some(Opening {
            folder: |place, options| Ok(Box::new(S3Folder::open(place, options)?)),
            object: |place, options| {
                S3Folder::of_object(place, options).map(|(folder, name)| (Box::new(folder) as _, name))
            },
        }),
    },
];

fn remote_image(place: Place<'_>, options: RemoteOptions) -> Result<Warned> {
    let image = RemoteImage::open(place, options)?;
    let warning = image.warning();
    Ok((Arc::new(image), warning))
}

fn download(place: Place<'_>, options: RemoteOptions) -> Result<Reader> {
    Ok(Box::new(Download::new(place, options)?))
}

fn row(place: Place<'_>) -> Result<&'static Row> {
    let is_of = |row: &&Row| row.schemes.iter().any(|scheme| place.rest_of(scheme).is_some());
    ROWS.iter().find(is_of).ok_or_else(|| unknown(place))
}

/// Returns the error for a URL of no store.
fn unknown(place: Place<'_>) -> Error {
    let scheme = place.text().split_once(':').unwrap_or_default().0.to_ascii_lowercase();
    let error = Error::usage(format!("cannot open {}: unknown scheme {scheme:?}", place.shown()));
    error.hint(format!("known: {}; ./ before the name of a file", forms(|_| true)))
}

fn forms(are_listed: impl Fn(&&Row) -> bool) -> String {
    ROWS.iter().filter(are_listed).map(|row| row.form).collect::<Vec<_>>().join(", ")
}

/// Opens the object at a URL for reads of its ranges. Also returns a warning for the user.
///
/// Errors: `Usage` for a wrong URL; `Io` if the server does not answer; `Failed` if it refuses.
pub fn image_at(place: Place<'_>, options: RemoteOptions) -> Result<Warned> {
    (row(place)?.image)(place, options)
}

/// Opens the object at a URL for a read from start to end.
///
/// Errors: as [`Download::new`].
pub fn reader_at(place: Place<'_>, options: RemoteOptions) -> Result<Reader> {
    let row = row(place)?;
    match row.reader {
        Some(reader) => reader(place, options),
        None => Ok(Box::new(ImageReader::new((row.image)(place, options)?.0))),
    }
}

/// Opens the folder at a URL as a store; no request is sent.
///
/// Errors: `Usage` for a URL that is none.
pub fn folder_at(place: Place<'_>, options: RemoteOptions) -> Result<Box<dyn Store>> {
    match row(place) {
        Ok(Row { store: Some(opening), .. }) => (opening.folder)(place, options),
        _ => {
            let error = Error::usage(format!("cannot use {} as a store", place.shown()));
            let forms = forms(|row| row.store.is_some()).replace("/KEY", "/PREFIX");
            Err(error.hint(format!("a store is a directory, or {forms}")))
        }
    }
}

/// Opens the folder of the object at a URL, and returns the name of the object in it; no request is
/// sent.
///
/// Errors: `Usage` for a URL that names no object of a store.
pub fn object_at(place: Place<'_>, options: RemoteOptions) -> Result<InFolder> {
    match row(place) {
        Ok(Row { store: Some(opening), .. }) => (opening.object)(place, options),
        _ => {
            let error = Error::usage(format!("cannot write an image to {}", place.shown()));
            let forms = forms(|row| row.store.is_some());
            Err(error.hint(format!("{forms} takes images; packfs oci push writes to registries")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;

    #[test]
    fn urls_of_no_store_are_told_with_those_there_are() {
        let said = |error: Error| format!("{error} {:?}", error.hints());
        let options = || RemoteOptions::new(Environment::of([]));
        for (url, words) in [("FTP://host/a", "\"ftp\""), ("oci://host/a", "\"oci\"")] {
            let place = Place::from(url);
            let unknown = said(image_at(place, options()).err().unwrap());
            assert!(
                unknown.contains(words) && unknown.contains("https://, s3://BUCKET/KEY; ./"),
                "{unknown}"
            );
        }
        for url in ["ftp://host/a", "http://host/a"] {
            let folder = said(folder_at(Place::from(url), options()).err().unwrap());
            assert!(folder.contains("a directory, or s3://BUCKET/PREFIX"), "{folder}");
            let object = said(object_at(Place::from(url), options()).err().unwrap());
            assert!(object.contains("s3://BUCKET/KEY takes images;"), "{object}");
        }
        assert_eq!(object_at(Place::from("s3://b/p/a"), options()).unwrap().1, "a");
    }
}
