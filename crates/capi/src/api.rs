//! Functions of the header, in its order.
#![allow(unsafe_code)]

use crate::error::{Failure, answer, c_text, last, status};
use crate::handles::{Dir, File, Image};
use crate::held::Held;
use crate::pointers::{
    check, copy, handle, memory, named, option, options, requests, taken_back, text, texts, write,
};
use crate::session::{Options, Part, Session};
use crate::types::{
    DirEntry, Metadata, OnEntry, OnFinding, OpenOptions, PACKFS_DIGEST_SIZE, PACKFS_NAME_SIZE, ReadRequest,
};
use packfs::Severity;
use std::ffi::{c_char, c_int, c_void};

/// Returns the version of the library, such as "0.1.0"; valid forever.
#[unsafe(no_mangle)]
pub extern "C" fn packfs_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Returns the positive error number of the last call that failed on this thread, 0 if none has,
/// and sets message, unless that is NULL, to its text. The text is UTF-8, may have several lines,
/// and is valid until the next call that fails on this thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packfs_last_error(message: *mut *const c_char) -> c_int {
    let (number, text) = last();
    // SAFETY: NULL, or memory for a pointer. That NULL is refused changes nothing.
    let _ = unsafe { write(message, text, "message") };
    number
}

/// Opens an image in a file, on a block device, or at a URL (http://, https://, s3://BUCKET/KEY),
/// whatever its format, and sets image to a handle, which packfs_close frees. options may be NULL
/// for the defaults. On failure image is not changed.
///
/// Errors: those of open(2); -EOPNOTSUPP if no format knows the image.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packfs_open(
    place: *const c_char,
    options: *const OpenOptions,
    image: *mut *mut Image,
) -> c_int {
    status(|| {
        // SAFETY: the caller passes a text, options of their size, and memory for a handle.
        unsafe {
            let place = text(place, "place")?;
            let given = self::options(options)?;
            let options = Options {
                offset: given.offset,
                length: given.length,
                cache_bytes: given.cache_bytes,
                threads: given.threads,
                flags: given.flags,
                part: option(given.part, "options: part")?,
                devices: texts(given.devices, "options: devices")?,
                partition_table: option(given.partition_table, "options: partition_table")?,
                named: if given.named.is_null() {
                    None
                } else {
                    Some(handle(given.named, "options: named")?)
                },
            };
            give(image, "image", || Ok(Image(Held::new(Session::open(place, &options)?))))
        }
    })
}

/// Sets an option of opening by its name and a text, as the command line has them, such as
/// "snapshot", "subvol", or "no-journal"; switches take "on" and "off". An option with several
/// values is set once for each. The other fields of options go before what is set here. It is to be
/// freed by packfs_options_free.
///
/// Errors: -EINVAL, with a message that says which names or values are allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packfs_options_set(
    options: *mut OpenOptions,
    name: *const c_char,
    value: *const c_char,
) -> c_int {
    status(|| {
        // SAFETY: the caller passes two texts, and options of their size that nothing else uses.
        unsafe {
            let (name, value) = (text(name, "name")?, text(value, "value")?);
            let field = named(options)?;
            let mut set = taken_back(*field).unwrap_or_default();
            let outcome = set.set(name, value);
            *field = Box::into_raw(set);
            outcome.map(|()| 0)
        }
    })
}

/// Frees what packfs_options_set has set, so that options have their defaults again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packfs_options_free(options: *mut OpenOptions) {
    // SAFETY: the caller passes options of their size that nothing else uses.
    if let Ok(field) = unsafe { named(options) } {
        // SAFETY: a pointer of packfs_options_set, which is used for the last time.
        drop(unsafe { taken_back(std::mem::replace(field, std::ptr::null_mut())) });
    }
}

/// Frees an image, and ends its threads; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packfs_close(image: *mut Image) {
    // SAFETY: a handle that was not closed, and that no other call uses.
    free(unsafe { taken_back(image) }, |image| &image.0);
}

/// Returns the name of the format, such as "squashfs", or NULL on failure; valid until the image is
/// closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packfs_format(image: *const Image) -> *const c_char {
    let mut name = std::ptr::null();
    status(|| {
        // SAFETY: an open handle.
        name = unsafe { handle(image, "image") }?.0.get()?.format().as_ptr();
        Ok(0)
    });
    name
}

/// Returns warning number index about the image, such as one that was chosen of several, or NULL if
/// there are no more; valid until the image is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packfs_warning(image: *const Image, index: usize) -> *const c_char {
    let mut warning = std::ptr::null();
    status(|| {
        // SAFETY: an open handle.
        let image = unsafe { handle(image, "image") }?.0.get()?;
        warning = image.warning(index).map_or(std::ptr::null(), std::ffi::CStr::as_ptr);
        Ok(0)
    });
    warning
}

/// Sets metadata to that of a path. Links are followed within the image; with PACKFS_NOFOLLOW
/// in flags, one at the end of the path is not, as by lstat(2).
///
/// Errors: -ENOENT, -ENOTDIR, -ELOOP, -EUCLEAN.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packfs_stat(
    image: *const Image,
    path: *const c_char,
    flags: u32,
    metadata: *mut Metadata,
) -> c_int {
    status(|| {
        // SAFETY: an open handle, a text, and memory for the metadata.
        unsafe {
            let found = handle(image, "image")?.0.get()?.stat(text(path, "path")?, flags)?;
            write(metadata, found, "metadata")?;
        }
        Ok(0)
    })
}

/// Opens a directory, and sets dir to a handle, which packfs_closedir frees.
///
/// Errors: as packfs_stat; -ENOTDIR for anything but a directory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packfs_opendir(
    image: *const Image,
    path: *const c_char,
    dir: *mut *mut Dir,
) -> c_int {
    status(|| {
        // SAFETY: an open handle, a text, and memory for a handle.
        unsafe {
            let image = handle(image, "image")?.0.get()?;
            let path = text(path, "path")?;
            give(dir, "dir", || Ok(Dir(Held::new(image.list(path)?))))
        }
    })
}

/// Sets entry to the next entry of a directory, in stored order, without "." and "..". Returns 1,
/// or 0 at the end. Threads that share a directory get different entries.
///
/// Errors: -EUCLEAN for damage, once, after the entries that can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packfs_readdir(dir: *mut Dir, entry: *mut DirEntry) -> c_int {
    status(|| {
        // SAFETY: an open handle, and memory for an entry.
        unsafe {
            let dir = handle(dir, "dir")?.0.get()?;
            // Before an entry is taken that would be lost.
            check(entry, "entry")?;
            let Some(found) = dir.next()? else { return Ok(0) };
            let mut name = [0; PACKFS_NAME_SIZE];
            // Names have at most 255 bytes, so that a NUL is left.
            for (to, from) in name.iter_mut().zip(&found.name) {
                *to = *from as c_char;
            }
            let mode = found.file_type.mode_bits();
            write(entry, DirEntry { id: found.id.0, mode, name }, "entry")?;
        }
        Ok(1)
    })
}

/// Frees a directory; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packfs_closedir(dir: *mut Dir) {
    // SAFETY: a handle that was not closed, and that no other call uses.
    free(unsafe { taken_back(dir) }, |dir| &dir.0);
}

/// Calls on_entry for everything in the image: the root first, each directory before its entries,
/// in stored order. context is passed to on_entry. Damaged parts are passed over. Returns 0, the
/// result of on_entry that ended the walk, or the first error once all else was visited. on_entry
/// may call any function of the library, but not close the image.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packfs_walk(image: *const Image, on_entry: OnEntry, context: *mut c_void) -> c_int {
    status(|| {
        let on_entry = on_entry.ok_or_else(|| Failure::argument("on_entry is NULL"))?;
        // SAFETY: an open handle.
        let image = unsafe { handle(image, "image") }?.0.get()?;
        // SAFETY: a function of this type, by the type of the argument; the text and the metadata
        // outlive the call.
        image.walk(&mut |path, metadata| unsafe { on_entry(context, path.as_ptr(), metadata) })
    })
}

/// Opens a file, and sets file to a handle, which packfs_file_close frees.
///
/// Errors: as packfs_stat; -EISDIR for a directory, -EINVAL for a device and the like.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packfs_file_open(
    image: *const Image,
    path: *const c_char,
    file: *mut *mut File,
) -> c_int {
    status(|| {
        // SAFETY: an open handle, a text, and memory for a handle.
        unsafe {
            let image = handle(image, "image")?.0.get()?;
            let path = text(path, "path")?;
            give(file, "file", || Ok(File(Held::new(image.file(path)?))))
        }
    })
}

/// Reads up to size bytes from an offset of a file into buffer, as pread(2). Returns the number of
/// bytes, fewer than size only at the end of the file. Reading in order decodes ahead on other
/// threads.
///
/// Errors: -EUCLEAN if the data does not decode; buffer may then be partly filled.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packfs_file_read(
    file: *const File,
    offset: u64,
    buffer: *mut c_void,
    size: usize,
) -> i64 {
    answer(|| {
        // SAFETY: an open handle, and memory for so many bytes.
        let (file, memory) = unsafe { (handle(file, "file")?.0.get()?, memory(buffer, size, "buffer")?) };
        Ok(file.read_at(offset, memory)? as i64)
    })
}

/// Frees a file; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packfs_file_close(file: *mut File) {
    // SAFETY: a handle that was not closed, and that no other call uses.
    free(unsafe { taken_back(file) }, |file| &file.0);
}

/// Reads count parts of files at once, on all threads, in the order of the image, so that each
/// block is decoded once. Sets the field result of each request. Returns the number of requests
/// that failed; the last error is that of the first of them. Buffers must not overlap.
///
/// Errors: -EINVAL if two buffers overlap; then no result is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packfs_read_many(
    image: *const Image,
    requests: *mut ReadRequest,
    count: usize,
) -> i64 {
    let mut first = None;
    let failed = answer(|| {
        // SAFETY: an open handle, and so many requests.
        let (image, requests) =
            unsafe { (handle(image, "image")?.0.get()?, self::requests(requests, count)?) };
        let (mut parts, mut numbers) = (Vec::new(), Vec::new());
        let mut failed = Vec::new();
        for (number, request) in requests.iter_mut().enumerate() {
            let ReadRequest { path, offset, buffer, size, .. } = *request;
            // SAFETY: a text, and memory for so many bytes, which no other request has.
            match unsafe { text(path, "path").and_then(|path| Ok((path, memory(buffer, size, "buffer")?))) } {
                Ok((path, memory)) => {
                    parts.push(Part { path, offset, memory });
                    numbers.push(number);
                }
                Err(failure) => failed.push((number, failure)),
            }
        }
        for (number, result) in numbers.into_iter().zip(image.read_many(parts)?) {
            match result {
                Ok(len) => requests[number].result = i64::try_from(len).unwrap_or(i64::MAX),
                Err(failure) => failed.push((number, failure)),
            }
        }
        failed.sort_by_key(|(number, _)| *number);
        failed.iter().for_each(|(number, failure)| requests[*number].result = failure.result());
        let count = failed.len();
        first = failed.into_iter().next().map(|(_, failure)| failure);
        Ok(i64::try_from(count).unwrap_or(i64::MAX))
    });
    if let Some(failure) = first {
        answer(|| Err(failure));
    }
    failed
}

/// Copies the target of a symbolic link to buffer, with a NUL after it, and returns its length
/// without the NUL. A size of 0 only returns the length.
///
/// Errors: -EINVAL for anything but a link, -ERANGE if size is not greater than the length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packfs_readlink(
    image: *const Image,
    path: *const c_char,
    buffer: *mut c_char,
    size: usize,
) -> i64 {
    answer(|| {
        // SAFETY: an open handle, a text, and memory for so many bytes.
        unsafe {
            let target = handle(image, "image")?.0.get()?.link(text(path, "path")?)?;
            copy(&target, true, buffer.cast(), size)
        }
    })
}

/// Copies the value of an extended attribute to buffer, and returns its length. name is the full
/// name, such as "user.comment". A size of 0 only returns the length. Links are followed unless
/// flags has PACKFS_NOFOLLOW.
///
/// Errors: as packfs_stat; -ENODATA if there is no such attribute, -ERANGE if size is less than the
/// length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packfs_getxattr(
    image: *const Image,
    path: *const c_char,
    flags: u32,
    name: *const c_char,
    buffer: *mut c_void,
    size: usize,
) -> i64 {
    answer(|| {
        // SAFETY: an open handle, two texts, and memory for so many bytes.
        unsafe {
            let image = handle(image, "image")?.0.get()?;
            let value = image.xattr(text(path, "path")?, text(name, "name")?, flags)?;
            copy(&value, false, buffer, size)
        }
    })
}

/// Copies the names of all extended attributes to buffer, each with a NUL after it, and returns
/// their length together. A size of 0 only returns the length. Links are followed unless flags has
/// PACKFS_NOFOLLOW.
///
/// Errors: as packfs_stat; -ERANGE if size is less than the length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packfs_listxattr(
    image: *const Image,
    path: *const c_char,
    flags: u32,
    buffer: *mut c_char,
    size: usize,
) -> i64 {
    answer(|| {
        // SAFETY: an open handle, a text, and memory for so many bytes.
        unsafe {
            let names = handle(image, "image")?.0.get()?.xattr_names(text(path, "path")?, flags)?;
            copy(&names, false, buffer.cast(), size)
        }
    })
}

/// Checks the structures of the image, and with PACKFS_CHECK_DATA in flags decodes all file data.
/// Calls on_finding, unless that is NULL, for up to 1000 findings, once the check is done; context
/// is passed to it. Returns the number of errors: 0 for a sound image. One whose checksum does not
/// match is only opened, and can only be checked, with PACKFS_IGNORE_CHECKSUM.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packfs_check(
    image: *const Image,
    flags: u32,
    on_finding: OnFinding,
    context: *mut c_void,
) -> i64 {
    answer(|| {
        // SAFETY: an open handle.
        let found = unsafe { handle(image, "image") }?.0.get()?.check(flags)?;
        let Some(on_finding) = on_finding else { return Ok(i64::try_from(found.errors).unwrap_or(i64::MAX)) };
        for finding in &found.findings {
            let severity = match finding.severity {
                Severity::Note => 0,
                Severity::Warning => 1,
                Severity::Error => 2,
            };
            let [place, fault] =
                [&finding.place, &finding.fault].map(|text| c_text(&crate::words::in_c(text)));
            // SAFETY: a function of this type, by the type of the argument; the texts outlive the
            // call.
            unsafe { on_finding(context, severity, place.as_ptr(), fault.as_ptr()) };
        }
        Ok(i64::try_from(found.errors).unwrap_or(i64::MAX))
    })
}

/// Copies the digest of the tree to buffer, with a NUL after it, and returns its length without the
/// NUL: the digest that `packfs digest` prints, equal for equal trees in images of any format.
/// Decodes all data. PACKFS_DIGEST_SIZE bytes are enough.
///
/// Errors: -EUCLEAN if something cannot be read, -ERANGE if size is too small.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packfs_digest(image: *const Image, buffer: *mut c_char, size: usize) -> i64 {
    answer(|| {
        // SAFETY: an open handle, and memory for so many bytes.
        unsafe {
            let digest = handle(image, "image")?.0.get()?.digest()?;
            debug_assert!(digest.len() < PACKFS_DIGEST_SIZE);
            copy(digest.as_bytes(), true, buffer.cast(), size)
        }
    })
}

/// Makes a handle, and gives it to the caller.
///
/// # Safety
/// The pointer is null, or to memory of the caller for a pointer.
unsafe fn give<T>(
    to: *mut *mut T,
    name: &str,
    make: impl FnOnce() -> crate::error::Result<T>,
) -> crate::error::Result<c_int> {
    // Before anything is made that could not be given.
    check(to, name)?;
    let made = Box::into_raw(Box::new(make()?));
    // SAFETY: memory for a pointer, by the contract.
    unsafe { write(to, made, name) }?;
    Ok(0)
}

/// Frees a handle in its own process; in any other one it is left as it is.
fn free<T, U>(handle: Option<Box<T>>, held: impl Fn(&T) -> &Held<U>) {
    // Nothing can be done about a failure.
    status(|| {
        if let Some(handle) = handle {
            match held(&handle).get() {
                Ok(_) => drop(handle),
                Err(_) => {
                    Box::leak(handle);
                }
            }
        }
        Ok(0)
    });
}
