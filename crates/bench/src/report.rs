//! `lacuna-bench report`
use crate::args::ReportArgs;
use crate::document;
use crate::markdown::markdown;
use lacuna_measure::failure::Result;
use lacuna_measure::{out, page, record};

pub(crate) fn run(args: &ReportArgs) -> Result<()> {
    if !args.fill.is_empty() {
        return args.fill.iter().try_for_each(|path| document::fill(path, args.check));
    }
    // Tables are printed if nothing else is requested.
    let tables = args.markdown.as_deref().or(args.html.is_none().then_some("-"));
    let inputs: Vec<_> = args.files.iter().map(|path| ("an input", Some(path.as_str()))).collect();
    out::check_outputs(&[("--html", args.html.as_deref()), ("--markdown", tables)], &inputs)?;
    let mut lines = Vec::new();
    for file in &args.files {
        lines.extend(record::read(file)?);
    }
    if let Some(path) = &args.html {
        page::write(path, &lines)?;
    }
    tables.map_or(Ok(()), |path| out::save(path, &markdown(&lines, None)))
}
