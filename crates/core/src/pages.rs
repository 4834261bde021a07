//! Large pages for large arrays: fewer address translations for the same bytes.

/// Bytes from which an array is worth large pages.
const LARGE: usize = 4 << 20;

/// Asks the system to back an array by large pages, where it is large and the system can. The array's contents stay
/// as they are; where the system declines nothing changes.
///
/// Measured on a 2-core Zen 4 machine with 4 KiB pages by default: a third off an iteration of CG at 261121 unknowns.
pub(crate) fn advise<T>(array: &[T]) {
    if size_of_val(array) >= LARGE {
        system::advise(array.as_ptr() as usize, size_of_val(array));
    }
}

#[cfg(target_os = "linux")]
mod system {
    /// `MADV_COLLAPSE` of Linux 6.1, which acts on pages already in use.
    const COLLAPSE: libc::c_int = 25;
    const PAGE: usize = 2 << 20;

    pub(super) fn advise(start: usize, bytes: usize) {
        let (first, last) = (start.next_multiple_of(PAGE), (start + bytes) / PAGE * PAGE);
        if first >= last {
            return;
        }
        for advice in [libc::MADV_HUGEPAGE, COLLAPSE] {
            // SAFETY: the range lies within one live array, and neither advice changes what it holds. A kernel that
            // knows the advice not answers with an error, which is no concern.
            unsafe { libc::madvise(first as *mut libc::c_void, last - first, advice) };
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) fn advise(_: usize, _: usize) {}
}
