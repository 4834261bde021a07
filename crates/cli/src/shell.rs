//! Command lines to copy into a shell.
use std::borrow::Cow;

/// Characters with no meaning to a shell.
const PLAIN: &str = "-_./:,=+@%^";

/// A word as a POSIX shell reads it: in quotes if it has characters with a meaning there.
pub(crate) fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || PLAIN.contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', r"'\''")).into()
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_with_a_meaning_are_quoted() {
        for plain in ["gen:poisson2d:9x9", "dir/a-1.mtx.gz", "gmres:restart=50", "é.mtx", "-"] {
            assert_eq!(quoted(plain), plain);
        }
        for (word, expected) in
            [("a b.mtx", "'a b.mtx'"), ("it's", r"'it'\''s'"), ("", "''"), ("$(x)*", "'$(x)*'"), ("~", "'~'")]
        {
            assert_eq!(quoted(word), expected);
        }
    }
}
