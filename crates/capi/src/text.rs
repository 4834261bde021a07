//! Texts to the caller, some of them JSON.
use std::ffi::c_char;

/// Copies a text with a 0 at its end, cut at a character that fits. Returns the length that it needs, with the 0.
///
/// # Safety
/// `to` must be null or point to `capacity` bytes.
pub(crate) unsafe fn copied(text: &str, to: *mut c_char, capacity: usize) -> usize {
    if !to.is_null() && capacity > 0 {
        let most = text.len().min(capacity - 1);
        let fits = (0..=most).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        // SAFETY: `fits + 1` bytes are at most `capacity`, and the text is not the caller's memory.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), to.cast(), fits);
            *to.add(fits) = 0;
        }
    }
    text.len() + 1
}

/// A string of JSON.
pub(crate) fn string(text: &str) -> String {
    let mut json = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => json += "\\\"",
            '\\' => json += "\\\\",
            '\n' => json += "\\n",
            control if control < ' ' => json += &format!("\\u{:04x}", u32::from(control)),
            other => json.push(other),
        }
    }
    json.push('"');
    json
}

/// A number of JSON; `null` for one that JSON does not have.
pub(crate) fn number(value: f64) -> String {
    if value.is_finite() { format!("{value:e}") } else { "null".into() }
}

/// An array of JSON.
pub(crate) fn array(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(", "))
}
