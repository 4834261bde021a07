//! Pointers of the caller's as references, slices and texts.
use crate::error::wrong;
use lacuna::dynamic::Indices;
use lacuna::{Error, NumberType};
use std::ffi::{CStr, c_char, c_int, c_void};

/// Where a handle goes, set to null first.
///
/// # Safety
/// `to` must be null or point to a pointer that can be written.
pub(crate) unsafe fn result<'a, T>(to: *mut *mut T) -> Result<&'a mut *mut T, Error> {
    // SAFETY: as the caller promises.
    let to = unsafe { to.as_mut() }.ok_or_else(|| wrong("the result", "expected a pointer, got NULL"))?;
    *to = std::ptr::null_mut();
    Ok(to)
}

/// What a handle points at.
///
/// # Safety
/// `handle` must be null, or a handle of this library that is not freed and that no other call frees meanwhile.
pub(crate) unsafe fn reference<'a, T>(what: &str, handle: *const T) -> Result<&'a T, Error> {
    // SAFETY: as the caller promises.
    unsafe { handle.as_ref() }.ok_or_else(|| wrong(what, "expected a handle, got NULL"))
}

/// A text; `None` for null.
///
/// # Safety
/// `text` must be null, or end with a 0.
pub(crate) unsafe fn text<'a>(what: &str, text: *const c_char) -> Result<Option<&'a str>, Error> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map(Some).map_err(|error| wrong(what, format!("expected UTF-8: {error}")))
}

/// The bytes of `count` numbers.
///
/// # Safety
/// `numbers` must be null or point to so many numbers of the type, which nobody writes meanwhile.
pub(crate) unsafe fn numbers<'a>(
    what: &str,
    numbers: *const c_void,
    count: usize,
    kind: NumberType,
) -> Result<&'a [u8], Error> {
    let bytes = bytes(what, numbers, count, kind.size())?;
    if count == 0 {
        return Ok(&[]);
    }
    // SAFETY: not null, and as the caller promises; any bytes are bytes.
    Ok(unsafe { std::slice::from_raw_parts(numbers.cast(), bytes) })
}

/// The same to write.
///
/// # Safety
/// As [`numbers`], and nobody else reads them meanwhile.
pub(crate) unsafe fn numbers_mut<'a>(
    what: &str,
    numbers: *mut c_void,
    count: usize,
    kind: NumberType,
) -> Result<&'a mut [u8], Error> {
    let bytes = bytes(what, numbers, count, kind.size())?;
    if count == 0 {
        return Ok(&mut []);
    }
    // SAFETY: not null, and as the caller promises.
    Ok(unsafe { std::slice::from_raw_parts_mut(numbers.cast(), bytes) })
}

/// `count` indices of a type.
///
/// # Safety
/// `indices` must be null or point to so many indices of the type, which nobody writes meanwhile.
pub(crate) unsafe fn indices<'a>(
    what: &str,
    indices: *const c_void,
    count: usize,
    wide: bool,
) -> Result<Indices<'a>, Error> {
    let align = if wide { align_of::<i64>() } else { align_of::<i32>() };
    bytes(what, indices, count, align)?;
    if !indices.addr().is_multiple_of(align) {
        return Err(wrong(
            what,
            format!("expected an address that is a multiple of {align}, got {indices:p}"),
        ));
    }
    Ok(match (count, wide) {
        (0, false) => Indices::I32(&[]),
        (0, true) => Indices::I64(&[]),
        // SAFETY: not null and aligned, and as the caller promises.
        (_, false) => Indices::I32(unsafe { std::slice::from_raw_parts(indices.cast(), count) }),
        // SAFETY: likewise.
        (_, true) => Indices::I64(unsafe { std::slice::from_raw_parts(indices.cast(), count) }),
    })
}

/// The bytes of an array that is there.
fn bytes(what: &str, array: *const c_void, count: usize, size: usize) -> Result<usize, Error> {
    if array.is_null() && count > 0 {
        return Err(wrong(what, format!("expected {count} numbers, got NULL")));
    }
    let bytes = count.checked_mul(size).filter(|bytes| isize::try_from(*bytes).is_ok());
    bytes.ok_or_else(|| wrong(what, format!("{count} numbers are more than memory holds")))
}

/// A size.
pub(crate) fn size(what: &str, given: i64) -> Result<usize, Error> {
    usize::try_from(given).map_err(|_| wrong(what, format!("expected a number from 0, got {given}")))
}

/// A number type.
pub(crate) fn kind(given: c_int) -> Result<NumberType, Error> {
    match given {
        0 => Ok(NumberType::F32),
        1 => Ok(NumberType::F64),
        2 => Ok(NumberType::C32),
        3 => Ok(NumberType::C64),
        other => Err(wrong("type", format!("expected 0 to 3, as in lac_type, got {other}"))),
    }
}

/// Whether indices have 64 bits.
pub(crate) fn wide(given: c_int) -> Result<bool, Error> {
    match given {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(wrong("index", format!("expected 0 or 1, as in lac_index, got {other}"))),
    }
}
