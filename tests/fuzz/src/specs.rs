//! Names of generated matrices.
use lacuna::backend::text::escaped;
use lacuna::{Complex64, Spec};

/// Any text is a matrix's name or refused with words; what its parsed form prints is the same name again, and small matrices are built.
pub fn specs(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Spec::parse(&text) {
        Ok(spec) => {
            assert_eq!(Spec::parse(&spec.to_string()).expect("what is printed is read"), spec);
            if is_small(&text)
                && let Ok(a) = spec.build::<Complex64>()
            {
                crate::readers::is_kept(&a);
            }
        }
        Err(error) => assert!(!escaped(&error.to_string()).is_empty()),
    }
}

/// Whether all numbers in a name together are small: none of the generators then makes many entries.
fn is_small(text: &str) -> bool {
    let numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|word| !word.is_empty());
    let product =
        numbers.map(|word| word.parse().unwrap_or(usize::MAX).max(1)).fold(1, usize::saturating_mul);
    let cubed = ["poisson-p1", "elasticity3d", "dense"].iter().any(|name| text.contains(name));
    let fixed = ["spe10", "alike"].iter().any(|name| text.contains(name));
    !fixed && product <= if cubed { 12 } else { 2000 }
}
