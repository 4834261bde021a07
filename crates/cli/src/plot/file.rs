//! Plots in files.
use lacuna::backend::text::shown_name;
use lacuna_measure::failure::{Failure, Result};
use lacuna_measure::figure::Figure;

/// Writes a drawing; the extension of the name selects the form.
pub(crate) fn save(figure: &Figure, path: &str) -> Result<()> {
    let svg = figure.svg();
    let bytes = match format_of(path) {
        #[cfg(feature = "png")]
        Some("png") => super::png::encode(&svg).map_err(|message| lacuna::Error::Unsupported {
            operation: format!("drawing {}", shown_name(path)),
            message,
        })?,
        _ => svg.into_bytes(),
    };
    std::fs::write(path, bytes).map_err(|e| Failure::writing(path, e))
}

/// Rejects a name whose extension this build does not write, before any work is done for it.
pub(crate) fn check_name(path: &str) -> Result<()> {
    check_option("--plot", path)
}

/// The same for another option.
pub(crate) fn check_option(option: &str, path: &str) -> Result<()> {
    let shown = shown_name(path);
    match format_of(path) {
        Some("png") if cfg!(not(feature = "png")) => Err(Failure::Usage(format!(
            "{option} {shown}: this build writes no PNG; use a name that ends in .svg, or install the command with \
             `--features png`"
        ))),
        Some(_) => Ok(()),
        None => Err(Failure::Usage(format!("{option} {shown}: expected a name that ends in .svg or .png"))),
    }
}

fn format_of(path: &str) -> Option<&'static str> {
    let end = path.rsplit_once('.')?.1;
    ["svg", "png"].into_iter().find(|known| end.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::check_name;

    #[test]
    fn names_end_in_a_format() {
        assert!(check_name("a.SVG").is_ok());
        assert_eq!(check_name("a.b.png").is_ok(), cfg!(feature = "png"));
        assert!(check_name("a.pdf").is_err() && check_name("png").is_err());
    }
}
