//! `lacuna report`
use crate::args::ReportArgs;
use crate::failure::{Failure, Result};
use crate::{document, out, page, record};

pub(crate) fn run(args: &ReportArgs) -> Result<()> {
    if !args.fill.is_empty() {
        return args.fill.iter().try_for_each(|path| document::fill(path, args.check));
    }
    for (option, path) in [("--html", &args.html), ("--markdown", &args.markdown)] {
        path.as_ref().map_or(Ok(()), |path| out::check_place(option, path))?;
    }
    let mut lines = Vec::new();
    for file in &args.files {
        lines.extend(record::read(file)?);
    }
    if let Some(path) = &args.html {
        page::write(path, &lines)?;
    }
    match args.markdown.as_deref() {
        None if args.html.is_some() => Ok(()),
        None | Some("-") => out::print(&page::markdown(&lines, None)),
        Some(path) => {
            std::fs::write(path, page::markdown(&lines, None)).map_err(|e| Failure::writing(path, e))
        }
    }
}
