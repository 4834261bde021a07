//! How ranks learn of an error of one of them, and that all do the same.
use crate::Links;
use lacuna_engine::{Error, Result};

/// Bytes of what a rank says: a word that is the same on all, and the start of its error.
const WORD: usize = 8;
const TEXT: usize = 504;

/// Everybody's words and errors; `said` is a buffer.
fn exchange(links: &mut dyn Links, word: u64, own: Option<&Error>, said: &mut Vec<u8>) -> Result<()> {
    let mut mine = [0; WORD + TEXT];
    mine[..WORD].copy_from_slice(&word.to_le_bytes());
    if let Some(own) = own {
        let text = own.to_string();
        let end = (0..=text.len().min(TEXT)).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        mine[WORD..WORD + end].copy_from_slice(&text.as_bytes()[..end]);
    }
    let counts = vec![mine.len(); links.ranks()];
    links.all_gather(&mine, &counts, said)
}

/// The error of the first rank that has one, as the others see it.
fn first_said(said: &[u8]) -> Option<Error> {
    let texts = said.chunks_exact(WORD + TEXT).map(|said| {
        let text = &said[WORD..];
        &text[..text.iter().position(|byte| *byte == 0).unwrap_or(TEXT)]
    });
    let (rank, text) = texts.enumerate().find(|(_, text)| !text.is_empty())?;
    Some(Error::Device {
        device: format!("rank {rank}"),
        operation: "its part of the system".into(),
        message: String::from_utf8_lossy(text).into_owned(),
    })
}

/// The error of the first rank that has one. All ranks **must** call it.
///
/// # Errors
/// As [`Links::all_gather`].
pub(crate) fn first_error(
    links: &mut dyn Links,
    own: Option<&Error>,
    said: &mut Vec<u8>,
) -> Result<Option<Error>> {
    exchange(links, 0, own, said)?;
    Ok(first_said(said))
}

/// Fails on every rank if it did on one, or if they did different things, which `word` tells. All ranks **must** call it.
///
/// # Errors
/// The rank's own, that of the first rank that has one, or [`Error::Structure`]; as [`Links::all_gather`].
pub(crate) fn agree<R>(links: &mut dyn Links, what: &str, word: u64, done: Result<R>) -> Result<R> {
    let mut said = Vec::new();
    exchange(links, word, done.as_ref().err(), &mut said)?;
    let done = done?;
    if let Some(error) = first_said(&said) {
        return Err(error);
    }
    let mut words = said.chunks_exact(WORD + TEXT).map(|said| &said[..WORD]);
    let first = words.next();
    match words.position(|word| Some(word) != first) {
        None => Ok(done),
        Some(rank) => Err(Error::Structure {
            operation: what.into(),
            message: format!("rank {} does something else than rank 0", rank + 1),
        }),
    }
}
