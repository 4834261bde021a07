//! The lists at the end of the help, which explain the names.
use lacuna::formats::{FORMATS, MATCHING, ORDERS, VARIANTS};
use lacuna::solvers::auto::{method_conditions, preconditioner_conditions};
use lacuna::solvers::{Combined, METHODS, OptionInfo, PRECONDITIONERS, SHARED_OPTIONS};
use lacuna::{Spec, backends};

/// Width of the lists below, in columns of text.
const WIDTH: usize = 92;

/// The values of `--method`, `--precond` and similar options, and the exit codes.
pub(super) fn lists() -> String {
    let built_in = backends().into_iter().filter(|b| b.built_in);
    let of = |name, about, options| (name, about, options);
    let combined = Combined::all().map(|m| of(m.name, m.about, &[][..]));
    with_options("Methods", &mut METHODS.iter().map(|m| of(m.name, m.about, m.options)).chain(combined))
        + &with_options(
            "Preconditioners",
            &mut PRECONDITIONERS.iter().map(|p| of(p.name, p.about, p.options)).chain([of(
                "any but none",
                "options that all of these take",
                SHARED_OPTIONS,
            )]),
        )
        + &automatic("--method", &method_conditions())
        + &automatic("--precond", &preconditioner_conditions())
        + &formats()
        + &list("Orders", &mut ORDERS.iter().chain([&MATCHING]).map(|o| (o.name, o.description)))
        + &list("Backends", &mut built_in.map(|b| (b.name, b.about)))
        + &generators()
        + "\nExit codes: 0 converged, 1 not converged, 2 bad input or usage, 3 device failure or out of memory."
}

/// Names with a description each.
fn list(heading: &str, items: &mut dyn Iterator<Item = (&str, &str)>) -> String {
    let lines: String = items.map(|(name, about)| entry(&format!("  {name:20}"), about)).collect();
    format!("{heading}:\n{lines}\n")
}

/// Names with a description each, and their options, which are given as `NAME:key=value,…`.
fn with_options(
    heading: &str,
    items: &mut dyn Iterator<Item = (&'static str, &'static str, &'static [OptionInfo])>,
) -> String {
    let lines: String = items
        .map(|(name, about, options)| {
            let option = |o: &OptionInfo| entry(&format!("    :{}={}", o.key, o.default), o.about);
            entry(&format!("  {name:20}"), about) + &options.iter().map(option).collect::<String>()
        })
        .collect();
    format!("{heading}:\n{lines}\n")
}

/// What `auto` takes as an option.
fn automatic(option: &str, conditions: &[(&str, String)]) -> String {
    let heading = format!("{option} auto takes the first of these whose condition holds");
    list(&heading, &mut conditions.iter().map(|(name, when)| (*name, &**when)))
}

fn formats() -> String {
    let variants = VARIANTS.iter().map(|(name, about)| (*name, *about));
    list("Formats", &mut FORMATS.iter().map(|f| (f.name, f.description)))
        + &list("Variants of formats, for spmv and compare alone", &mut variants.into_iter())
}

/// The values of the options of `lacuna spmv`.
pub(super) fn lists_of_products() -> String {
    formats() + &list("Orders", &mut ORDERS.iter().map(|o| (o.name, o.description))) + &generators()
}

/// The generators with their arguments.
pub(crate) fn generators() -> String {
    let lines = Spec::list().iter().map(|g| {
        let call = format!("  gen:{}:{}", g.name, g.arguments);
        format!("{call:38}  for example {}\n{}", g.example, entry("     ", g.description))
    });
    format!("Generators:\n{}", lines.collect::<String>())
}

/// An entry that begins with `start`. A description too long for one line continues below its own beginning.
fn entry(start: &str, about: &str) -> String {
    let indent = start.chars().count();
    let (mut text, mut column) = (start.to_string(), indent);
    for word in about.split(' ') {
        let length = word.chars().count() + 1;
        if column + length > WIDTH && column > indent {
            text += &format!("\n{:indent$}", "");
            column = indent;
        }
        text += &format!(" {word}");
        column += length;
    }
    text + "\n"
}
