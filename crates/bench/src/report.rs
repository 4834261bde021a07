//! `lacuna-bench report`
use crate::args::ReportArgs;
use crate::document;
use crate::markdown::markdown;
use lacuna_cli::failure::Result;
use lacuna_cli::{out, page, record};

pub(crate) fn run(args: &ReportArgs) -> Result<()> {
    if !args.fill.is_empty() {
        return args.fill.iter().try_for_each(|path| document::fill(path, args.check));
    }
    for (option, path) in [("--html", &args.html), ("--markdown", &args.markdown)] {
        path.as_ref().map_or(Ok(()), |path| out::check_place(option, path))?;
    }
    // Tables are printed if nothing else is requested.
    let tables = args.markdown.as_deref().or(args.html.is_none().then_some("-"));
    out::check_standard(&[("--html", args.html.as_deref()), ("--markdown", tables)])?;
    let mut lines = Vec::new();
    for file in &args.files {
        lines.extend(record::read(file)?);
    }
    if let Some(path) = &args.html {
        page::write(path, &lines)?;
    }
    tables.map_or(Ok(()), |path| out::save(path, &markdown(&lines, None)))
}
