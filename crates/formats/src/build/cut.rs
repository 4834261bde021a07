//! Arrays split among tasks.

/// The beginning of an array split into consecutive parts of these lengths.
pub(crate) fn cut<T>(array: &mut [T], lengths: impl IntoIterator<Item = usize>) -> Vec<&mut [T]> {
    let mut lengths = lengths.into_iter();
    parts(array, &mut || lengths.next())
}

fn parts<'a, T>(array: &'a mut [T], lengths: &mut dyn FnMut() -> Option<usize>) -> Vec<&'a mut [T]> {
    let mut parts = Vec::new();
    let mut rest = array;
    while let Some(length) = lengths() {
        let part;
        (part, rest) = rest.split_at_mut(length);
        parts.push(part);
    }
    parts
}

/// Sums lengths of rows, which follow a 0, to where each row starts and the last one ends; returns that end.
pub(crate) fn to_ends(lengths: &mut [u32]) -> u32 {
    let mut end = 0;
    lengths.iter_mut().for_each(|p| {
        end += *p;
        *p = end;
    });
    end
}

/// The lengths of consecutive lists, given their ends.
pub(crate) fn lengths(ends: &[u32]) -> impl Iterator<Item = usize> + '_ {
    ends.windows(2).map(|ends| (ends[1] - ends[0]) as usize)
}
