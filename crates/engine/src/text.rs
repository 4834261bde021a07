//! Makes external text safe to print: file names and file contents may hold anything.
use std::borrow::Cow;

/// Characters that are invisible, look like a plain space, or reorder others: Unicode's format characters,
/// separators, variation selectors, fillers and spaces other than the plain one.
const INVISIBLE: [(char, char); 29] = [
    ('\u{A0}', '\u{A0}'),
    ('\u{AD}', '\u{AD}'),
    ('\u{34F}', '\u{34F}'),
    ('\u{600}', '\u{605}'),
    ('\u{61C}', '\u{61C}'),
    ('\u{6DD}', '\u{6DD}'),
    ('\u{70F}', '\u{70F}'),
    ('\u{890}', '\u{891}'),
    ('\u{8E2}', '\u{8E2}'),
    ('\u{115F}', '\u{1160}'),
    ('\u{1680}', '\u{1680}'),
    ('\u{17B4}', '\u{17B5}'),
    ('\u{180B}', '\u{180F}'),
    ('\u{2000}', '\u{200F}'),
    ('\u{2028}', '\u{202F}'),
    ('\u{205F}', '\u{206F}'),
    ('\u{2800}', '\u{2800}'),
    ('\u{3000}', '\u{3000}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{FE00}', '\u{FE0F}'),
    ('\u{FEFF}', '\u{FEFF}'),
    ('\u{FFA0}', '\u{FFA0}'),
    ('\u{FFF0}', '\u{FFFB}'),
    ('\u{110BD}', '\u{110BD}'),
    ('\u{110CD}', '\u{110CD}'),
    ('\u{13430}', '\u{1343F}'),
    ('\u{1BCA0}', '\u{1BCA3}'),
    ('\u{1D173}', '\u{1D17A}'),
    ('\u{E0000}', '\u{E0FFF}'),
];

/// Text on one line, with control characters and invisible characters escaped as in Rust, such as `\u{1b}`
/// for an escape.
///
/// ```
/// use lacuna_engine::text::escaped;
///
/// assert_eq!(escaped("a\u{1B}[31m\n\u{202E}b é"), "a\\u{1b}[31m\\n\\u{202e}b é");
/// ```
pub fn escaped(text: &str) -> Cow<'_, str> {
    replaced(text, is_hidden, |c| c.escape_default().to_string())
}

/// Maximum number of characters of a name in an error.
const NAME: usize = 250;
/// Maximum number of bytes of a word in an error.
const WORD: usize = 40;

/// A name as [`escaped`], for an error; the middle of a very long one is left out, since a file may call
/// something by megabytes.
///
/// ```
/// use lacuna_engine::text::shown_name;
///
/// assert_eq!(shown_name("a.mtx"), "a.mtx");
/// let long = shown_name(&format!("{}.mtx", "a".repeat(1000))).into_owned();
/// assert!(long.starts_with("aaa") && long.contains("a…a") && long.ends_with("a.mtx") && long.len() < 260);
/// ```
pub fn shown_name(name: &str) -> Cow<'_, str> {
    let count = name.chars().count();
    if count <= NAME {
        return escaped(name);
    }
    let start: String = name.chars().take(NAME / 2).collect();
    let end: String = name.chars().skip(count - NAME / 2).collect();
    Cow::Owned(format!("{}…{}", escaped(&start), escaped(&end)))
}

/// The start of a word of a file or an argument as [`escaped`], for an error that quotes it.
///
/// ```
/// use lacuna_engine::text::shown_word;
///
/// assert_eq!((shown_word("1.2.3"), shown_word(b"\x1B")), ("1.2.3".into(), "\\u{1b}".into()));
/// assert_eq!(shown_word("9".repeat(1000)), "9".repeat(40) + "…");
/// ```
pub fn shown_word(word: impl AsRef<[u8]>) -> String {
    let word = word.as_ref();
    let start = String::from_utf8_lossy(&word[..word.len().min(WORD)]);
    let more = if word.len() > WORD { "…" } else { "" };
    escaped(&start).into_owned() + more
}

/// The same as [`escaped`] for multi-line text: line ends and tabs are kept.
pub fn printable(text: &str) -> Cow<'_, str> {
    replaced(text, |c| is_hidden(c) && c != '\n' && c != '\t', |c| c.escape_default().to_string())
}

/// The same for JSON, where such characters occur only within strings.
pub fn printable_json(text: &str) -> Cow<'_, str> {
    let units = |c: char| c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect();
    replaced(text, |c| is_hidden(c) && c != '\n' && c != '\t', units)
}

/// Whether a character is a control character or invisible.
fn is_hidden(c: char) -> bool {
    c.is_control() || (c > '~' && INVISIBLE.iter().any(|&(first, last)| (first..=last).contains(&c)))
}

fn replaced(text: &str, unwanted: impl Fn(char) -> bool, by: impl Fn(char) -> String) -> Cow<'_, str> {
    if !text.contains(&unwanted) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if unwanted(c) { clean.push_str(&by(c)) } else { clean.push(c) }
    }
    Cow::Owned(clean)
}

/// The known name that is nearest to a text, if one is near: letters left out, added, replaced, or exchanged with their
/// neighbours, one of three at most.
pub fn nearest<'n>(known: impl IntoIterator<Item = &'n str>, got: &str) -> Option<&'n str> {
    let got: Vec<char> = got.chars().take(LONGEST).collect();
    let distances = known.into_iter().map(|name| (distance(&name.chars().collect::<Vec<_>>(), &got), name));
    let (distance, name) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= (got.len() / 3).max(1) && distance < got.len()).then_some(name)
}

/// `; did you mean `NAME`?` for the [`nearest`] name, else nothing: the end of an error for an unknown one.
pub fn did_you_mean<'n>(known: impl IntoIterator<Item = &'n str>, got: &str) -> String {
    nearest(known, got).map_or(String::new(), |name| format!("; did you mean `{name}`?"))
}

/// The most characters of a text that are compared with names.
const LONGEST: usize = 64;

/// Insertions, deletions, replacements and exchanges of neighbours that make one text the other, none of them twice at a place.
///
/// Reference: Damerau 1964, doi:10.1145/363958.363994.
fn distance(a: &[char], b: &[char]) -> usize {
    // The rows of the table of distances of beginnings: two before the current one, for exchanges.
    let mut rows = [vec![0; b.len() + 1], vec![0; b.len() + 1], (0..=b.len()).collect::<Vec<_>>()];
    for i in 1..=a.len() {
        rows.rotate_left(1);
        rows[2][0] = i;
        for j in 1..=b.len() {
            let replaced = rows[1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(rows[1][j] + 1).min(rows[2][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[0][j - 2] + 1);
            }
            rows[2][j] = least;
        }
    }
    rows[2][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hidden_is_left() {
        let all: String = ('\0'..=char::MAX).collect();
        for clean in [escaped(&all), printable(&all), printable_json(&all)] {
            assert!(clean.chars().all(|c| !is_hidden(c) || c == '\n' || c == '\t'));
            assert!(clean.contains("aé中\u{301}😀".chars().last().unwrap_or_default()));
        }
        assert!(!escaped(&all).contains(['\n', '\t']));
        assert_eq!(printable("a\tb\r\u{9B}1m\n"), "a\tb\\r\\u{9b}1m\n");
        assert_eq!(printable_json("\"\u{9B}\u{E0001}\""), "\"\\u009b\\udb40\\udc01\"");
        assert!(matches!(escaped("plain µ — é"), Cow::Borrowed(_)));
    }

    #[test]
    fn ranges_are_in_order() {
        assert!(INVISIBLE.windows(2).all(|w| w[0].1 < w[1].0) && INVISIBLE.iter().all(|r| r.0 <= r.1));
    }

    #[test]
    fn a_name_that_is_near_is_proposed() {
        let names = ["cg", "minres", "gmres", "ilu0", "ilut", "poisson1d", "poisson2d"];
        for (got, meant) in [
            ("gmers", "gmres"),
            ("ilu1", "ilu0"),
            ("poisson2", "poisson2d"),
            ("cq", "cg"),
            ("Minres", "minres"),
        ] {
            assert_eq!(did_you_mean(names, got), format!("; did you mean `{meant}`?"), "{got}");
        }
        for got in ["", "x", "jacobi", "stencil", "multigrid"] {
            assert_eq!(did_you_mean(names, got), "", "{got}");
        }
    }
}
