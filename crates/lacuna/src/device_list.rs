//! Several devices in one name, as in `0,1` or `0-3`.
use lacuna_engine::{Error, Result};

/// Whether a text is a list of devices: indices, and ranges of them.
pub(crate) fn is_list(text: &str) -> bool {
    let begins = text.starts_with(|c: char| c.is_ascii_digit()) && text.contains([',', '-']);
    begins && text.bytes().all(|byte| byte.is_ascii_digit() || b",-".contains(&byte))
}

/// The indices of a list, of `there` devices.
///
/// # Errors
/// [`Error::Argument`] for an index that is none of theirs, or is there twice.
#[cfg(any(test, all(feature = "cuda", feature = "ranks")))]
pub(crate) fn indices(text: &str, there: usize) -> Result<Vec<usize>> {
    let refused = |why: String| Error::Argument {
        what: "device".into(),
        message: format!(
            "expected different indices below {there}, as in `0,1` or `0-1`, got `{text}`: {why}"
        ),
    };
    let mut list = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let ends = [first, last].map(|end| end.parse::<usize>().ok().filter(|end| *end < there));
        let [Some(first), Some(last)] = ends else {
            return Err(refused(format!("`{part}` is none of them")));
        };
        list.extend(first..=last);
    }
    let repeated = list.iter().enumerate().find(|(k, device)| list[..*k].contains(device));
    match repeated {
        Some((_, device)) => Err(refused(format!("{device} is there twice"))),
        None if list.is_empty() => Err(refused("a range that ends before it begins".into())),
        None => Ok(list),
    }
}

/// Fails for several devices of a backend that cannot share a system among them.
///
/// # Errors
/// [`Error::Unsupported`].
pub(crate) fn check_list(backend: &str, device: Option<&str>) -> Result<()> {
    let Some(list) = device.filter(|device| is_list(device)) else { return Ok(()) };
    let operation = format!("the devices {list} of the backend {backend}");
    let refuse =
        |message: &str| Err(Error::Unsupported { operation: operation.clone(), message: message.into() });
    match backend {
        "cuda" if !cfg!(feature = "ranks") => {
            refuse("this build has no ranks; turn on the feature `ranks` of the crate `lacuna`")
        }
        "opencl" => refuse("several devices share a system on `cuda` alone; name one"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_indices_and_ranges_each_device_once() {
        assert_eq!(indices("0,1", 2).unwrap(), [0, 1]);
        assert_eq!(indices("3,0-2", 4).unwrap(), [3, 0, 1, 2]);
        for (text, why) in [
            ("0,0", "0 is there twice"),
            ("0-1,1", "1 is there twice"),
            ("0,9", "`9` is none of them"),
            ("0,", "`` is none of them"),
            ("-", "`-` is none of them"),
            ("1-0", "ends before it begins"),
            ("0,99999999999999999999", "is none of them"),
        ] {
            let error = indices(text, 2).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains(&format!("got `{text}`")), "{error}");
        }
    }

    #[test]
    fn names_are_no_lists() {
        for name in ["0", "-1", "GTX-1080", "gpu", "auto", ""] {
            assert!(!is_list(name), "{name}");
        }
        assert!(check_list("opencl", Some("0,1")).unwrap_err().to_string().contains("`cuda` alone"));
        check_list("opencl", Some("1")).unwrap();
    }
}
