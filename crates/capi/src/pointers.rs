//! Pointers of the caller as references, each checked for null and alignment.
//!
//! Beyond that nothing can be checked: functions are unsafe, because the caller vouches for what
//! their comments in the header demand.
#![allow(unsafe_code)]

use crate::error::{ERANGE, Failure, Result};
use crate::named::NamedOptions;
use crate::types::{OpenOptions, ReadRequest};
use std::ffi::{CStr, c_char, c_void};
use std::mem::offset_of;

/// Longest size of options: a later version of them is not larger.
const OPTIONS_SIZE_MAX: usize = 4096;

/// Refuses null, and an address that no value of the type has.
pub fn check<T>(pointer: *const T, name: &str) -> Result<()> {
    match pointer {
        _ if pointer.is_null() => Err(Failure::argument(format!("{name} is NULL"))),
        _ if !pointer.is_aligned() => Err(Failure::argument(format!("{name} is not aligned"))),
        _ => Ok(()),
    }
}

/// Returns what a handle points to.
///
/// # Safety
/// The pointer is null, or one that the library returned and that was not closed yet; it stays
/// open for `'a`.
pub unsafe fn handle<'a, T>(pointer: *const T, name: &str) -> Result<&'a T> {
    check(pointer, name)?;
    // SAFETY: not null, aligned, and alive for 'a by the contract. The library hands out shared
    // references only.
    Ok(unsafe { &*pointer })
}

/// Takes a handle back; null is none.
///
/// # Safety
/// The pointer is null, or one that `into_raw` returned and that was not taken back before; nothing
/// else uses it.
pub unsafe fn taken_back<T>(pointer: *mut T) -> Option<Box<T>> {
    // SAFETY: a pointer of `Box::into_raw`, by the contract, which is used for the last time.
    (!pointer.is_null()).then(|| unsafe { Box::from_raw(pointer) })
}

/// Returns the bytes of a text that ends with NUL.
///
/// # Safety
/// The pointer is null, or to bytes up to a NUL that nothing changes for `'a`.
pub unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a [u8]> {
    check(pointer, name)?;
    // SAFETY: not null, and a text that ends with NUL, by the contract.
    Ok(unsafe { CStr::from_ptr(pointer) }.to_bytes())
}

/// Returns the text of an option; null is none.
///
/// # Safety
/// As [`text`].
pub unsafe fn option<'a>(pointer: *const c_char, name: &str) -> Result<Option<&'a [u8]>> {
    // SAFETY: the contract is the same.
    (!pointer.is_null()).then(|| unsafe { text(pointer, name) }).transpose()
}

/// Returns texts up to a null pointer; a null array has none.
///
/// # Safety
/// The pointer is null, or to pointers up to a null one, each as [`text`] wants it.
pub unsafe fn texts<'a>(pointer: *const *const c_char, name: &str) -> Result<Vec<&'a [u8]>> {
    let mut found = Vec::new();
    if pointer.is_null() {
        return Ok(found);
    }
    check(pointer, name)?;
    // SAFETY: not null, aligned, and a null pointer is the last, by the contract.
    unsafe {
        while let Some(text) = option(*pointer.add(found.len()), name)? {
            found.push(text);
        }
    }
    Ok(found)
}

/// Writes a result to where the caller wants it.
///
/// # Safety
/// The pointer is null, or to memory of the caller for one value, which nothing else uses now.
pub unsafe fn write<T>(pointer: *mut T, value: T, name: &str) -> Result<()> {
    check(pointer, name)?;
    // SAFETY: not null, aligned, and memory for one value, by the contract. What was there is not
    // dropped: it may be anything.
    unsafe { pointer.write(value) };
    Ok(())
}

/// Returns memory of the caller.
///
/// # Safety
/// The pointer is null, or to `size` bytes of the caller that nothing else uses for `'a`.
pub unsafe fn memory<'a>(pointer: *mut c_void, size: usize, name: &str) -> Result<&'a mut [u8]> {
    if size == 0 {
        return Ok(&mut []);
    }
    check(pointer.cast::<u8>(), name)?;
    check_size(size, name)?;
    // SAFETY: not null, and so many bytes for us alone, by the contract. To Rust, bytes of C hold
    // some value; none is read before it is written.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer.cast(), size) })
}

fn check_size(size: usize, name: &str) -> Result<()> {
    match isize::try_from(size) {
        Ok(_) => Ok(()),
        Err(_) => Err(Failure::argument(format!("{name}: {size} bytes are more than memory can have"))),
    }
}

/// Copies bytes to the caller, with a NUL after them if they are a text. Returns their length
/// without it; a size of 0 asks for the length only.
///
/// # Safety
/// As [`memory`].
pub unsafe fn copy(bytes: &[u8], is_text: bool, pointer: *mut c_void, size: usize) -> Result<i64> {
    let needed = bytes.len().saturating_add(usize::from(is_text));
    if size > 0 {
        // SAFETY: the contract is the same.
        let memory = unsafe { memory(pointer, size, "buffer") }?;
        let Some(memory) = memory.get_mut(..needed) else {
            let message = format!("buffer: {size} bytes are too few, {needed} are needed");
            return Err(Failure::new(ERANGE, message));
        };
        memory[..bytes.len()].copy_from_slice(bytes);
        memory[bytes.len()..].fill(0);
    }
    i64::try_from(bytes.len()).map_err(|_| Failure::new(ERANGE, "longer than a number can say"))
}

/// Returns options by value; null has the defaults.
///
/// # Safety
/// The pointer is null, or to options with as many bytes as their field `size` says.
pub unsafe fn options(pointer: *const OpenOptions) -> Result<OpenOptions> {
    let mut options = OpenOptions {
        size: size_of::<OpenOptions>(),
        offset: 0,
        length: 0,
        cache_bytes: 0,
        threads: 0,
        flags: 0,
        part: std::ptr::null(),
        devices: std::ptr::null(),
        partition_table: std::ptr::null(),
        named: std::ptr::null_mut(),
    };
    if pointer.is_null() {
        return Ok(options);
    }
    check(pointer, "options")?;
    const { assert!(offset_of!(OpenOptions, size) == 0) }
    // SAFETY: the first field is there in every version, by the contract.
    let size = unsafe { pointer.cast::<usize>().read() };
    // Of the first version, which ended there.
    let first = offset_of!(OpenOptions, devices);
    if !(first..=OPTIONS_SIZE_MAX).contains(&size) {
        let message = format!("options: size is {size}, {first} to {OPTIONS_SIZE_MAX} are allowed");
        return Err(Failure::argument(message));
    }
    let known = size.min(size_of::<OpenOptions>());
    // SAFETY: so many bytes are there, by the contract, and the known ones make up the first
    // fields, each of which may hold any value; the others keep their defaults.
    let further = unsafe {
        let fields = (&raw mut options).cast::<u8>();
        std::ptr::copy_nonoverlapping(pointer.cast::<u8>(), fields, known);
        std::slice::from_raw_parts(pointer.cast::<u8>().add(known), size - known)
    };
    if further.iter().any(|&byte| byte != 0) {
        return Err(Failure::argument("options: a field is set that this version of the library lacks"));
    }
    Ok(options)
}

/// Returns the field of options that named ones are in.
///
/// # Safety
/// As [`options`], and nothing else uses them for `'a`.
pub unsafe fn named<'a>(pointer: *mut OpenOptions) -> Result<&'a mut *mut NamedOptions> {
    // SAFETY: the contract is the same.
    let size = unsafe { options(pointer) }?.size;
    check(pointer, "options")?;
    let needed = offset_of!(OpenOptions, named) + size_of::<*mut NamedOptions>();
    if size < needed {
        let message = format!("options: size is {size}, for named ones {needed} are needed");
        return Err(Failure::argument(message));
    }
    // SAFETY: not null, aligned, and long enough for the field, which holds any value.
    Ok(unsafe { &mut (*pointer).named })
}

/// Returns the requests of the caller.
///
/// # Safety
/// The pointer is null, or to `count` requests that nothing else uses for `'a`.
pub unsafe fn requests<'a>(pointer: *mut ReadRequest, count: usize) -> Result<&'a mut [ReadRequest]> {
    if count == 0 {
        return Ok(&mut []);
    }
    check(pointer, "requests")?;
    check_size(count.saturating_mul(size_of::<ReadRequest>()), "requests")?;
    // SAFETY: not null, aligned, and so many requests for us alone, by the contract.
    let requests = unsafe { std::slice::from_raw_parts_mut(pointer, count) };
    refuse_overlaps(requests)?;
    Ok(requests)
}

/// Refuses memory that two requests share, because threads fill it at the same time.
fn refuse_overlaps(requests: &[ReadRequest]) -> Result<()> {
    let mut spans: Vec<(usize, usize)> = Vec::with_capacity(requests.len());
    for request in requests.iter().filter(|request| request.size > 0) {
        check_size(request.size, "buffer")?;
        let start = request.buffer.addr();
        spans.push((start, start.saturating_add(request.size)));
    }
    spans.sort_unstable();
    if spans.windows(2).any(|pair| pair[0].1 > pair[1].0 && pair[1].0 != 0) {
        Err(Failure::argument("requests: buffers of two requests overlap"))
    } else {
        Ok(())
    }
}
