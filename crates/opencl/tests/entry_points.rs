//! Without a device: every kernel the host asks for exists and takes the arguments that the host sets, in
//! that order; the kernels for CUDA have the same entry points.
use lacuna_engine::NumberType;
use lacuna_kernels_opencl::{BASE, FRAME, GENERATED, OPERATIONS, STREAMING};
use lacuna_opencl::text;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The arguments of each entry point, by its name without the number type; comments are removed.
fn kernels(source: &str) -> BTreeMap<String, Vec<String>> {
    let code: String =
        source.lines().map(|line| line.split("//").next().unwrap_or("").to_owned() + "\n").collect();
    let mut found = BTreeMap::new();
    for part in code.split("__kernel").skip(1) {
        let name = part.split("KERNEL(").nth(1).and_then(|p| p.split(')').next()).expect("a name");
        let list =
            part.split_once(&format!("KERNEL({name})(")).and_then(|p| p.1.split_once(") {")).expect("a body");
        // `LOCAL(number, work)` of a generated kernel is `__local number *work` here.
        let list = if list.0 == "OPERATION_ARGUMENTS" { operation_arguments() } else { list.0.to_owned() };
        let mut list = list.replace("LACUNA_GIVEN", "");
        for of in ["number", "ulong", "uint", "ushort"] {
            list = list.replace(&format!("LOCAL({of}, "), &format!("__local {of} *"));
        }
        let words = |a: &str| a.split_whitespace().collect::<Vec<_>>().join(" ");
        let arguments = list.split(',').map(|a| words(a).trim_end_matches(')').to_owned()).collect();
        found.insert(name.to_owned(), arguments);
    }
    found
}

/// The expansion of the macro of that name.
fn operation_arguments() -> String {
    let text = OPERATIONS.iter().find_map(|(_, text)| text.split_once("#define OPERATION_ARGUMENTS"));
    let lines = text.expect("a definition").1.lines();
    let mut more = true;
    lines
        .take_while(|line| std::mem::replace(&mut more, line.ends_with('\\')))
        .map(|line| line.trim_end_matches('\\'))
        .collect()
}

fn all() -> BTreeMap<String, Vec<String>> {
    OPERATIONS.iter().flat_map(|(_, source)| kernels(source)).collect()
}

const COMMON: [&str; 7] = [
    "__global uchar *arena",
    "__global const uchar *restrict fixed",
    "__global const uint *restrict table",
    "__global const ulong *restrict names",
    "__global number *cells",
    "__global ulong *control",
    "__global real *history",
];

#[test]
fn kernels_take_what_the_host_sets() {
    let kernels = all();
    let names: Vec<_> = kernels.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "advance",
            "basis_axpy",
            "basis_combine",
            "basis_dot",
            "basis_gram",
            "fold",
            "independent_check",
            "independent_decide",
            "independent_spread",
            "level_apply",
            "level_count",
            "level_diagonal",
            "level_divisors",
            "level_energy",
            "level_first_set",
            "level_graph",
            "level_hashed",
            "level_join",
            "level_labels",
            "level_look",
            "level_lump",
            "level_members",
            "level_norms",
            "level_open",
            "level_project",
            "level_prolong",
            "level_prolong_columns",
            "level_regular",
            "level_roots",
            "level_scaled",
            "level_scatter",
            "level_slices",
            "level_start",
            "level_states",
            "level_step",
            "level_strong",
            "level_tentative",
            "level_turn",
            "product_bounds",
            "product_compact",
            "product_ends",
            "product_insert",
            "product_scan",
            "product_sort",
            "product_sums",
            "product_tiles",
            "program",
            "spmm_bcsr",
            "spmm_csr",
            "spmm_dia",
            "spmm_sell",
            "spmv_bcsr",
            "spmv_csr",
            "spmv_csr_first",
            "spmv_dense",
            "spmv_dia",
            "spmv_hyb",
            "spmv_interpolation",
            "spmv_packed",
            "spmv_pieces",
            "spmv_pkt",
            "spmv_sell",
            "spmv_stencil",
            "sweep",
            "tri_solve_groups",
            "tri_solve_level",
            "tri_solve_levels",
        ]
    );
    let rest = |name: &str| {
        let arguments = &kernels[name];
        assert_eq!(arguments[..7], COMMON, "{name}");
        arguments[7..].to_vec()
    };
    let is_algebra =
        |name: &str| ["product_", "independent_", "level_"].iter().any(|family| name.starts_with(family));
    let is_of_a_pass = |name: &&&str| !["advance", "program"].contains(name) && !is_algebra(name);
    for name in names.iter().filter(is_of_a_pass) {
        let expected = [
            "__global number *partials",
            "__global uint *counter",
            "const uint first_cell",
            "const uint cell_count",
            "const uint op",
            "const uint slot_cap",
            "const uint local_capacity",
            "__local number *work",
            "__local number *slots",
            "__local ulong *local_control",
            "__local ulong2 *local_table",
        ];
        assert_eq!(rest(name), expected, "{name}");
    }
    assert_eq!(rest("advance"), ["const uint mode", "__local ulong *local_control"]);
    let expected = [
        "__global number *partials",
        "const uint first",
        "const uint cell_count",
        "const uint budget",
        "__local number *work",
        "__local number *slots",
        "__local number *local_cells",
        "__local ulong *local_control",
    ];
    assert_eq!(rest("program"), expected);
}

#[test]
fn the_kernel_of_a_program_takes_what_the_host_sets() {
    let kernels = kernels(FRAME);
    let arguments = &kernels["solve"];
    assert_eq!(arguments[..7], COMMON);
    let expected = [
        "__global ulong *exchange",
        "__global ulong *shared",
        "__global const uint *restrict windows",
        "__global const uint *restrict params",
        "__global const uint *restrict staged_columns",
        "__global const number *restrict staged_values",
        "const uint first_cell",
        "const uint cell_count",
        "const uint budget",
        "const uint enter",
        "const uint n",
        "const uint half_words",
        "const uint short_history",
        "__local number *work",
        "__local number *got",
        "__local number *rows_at",
        "__local number *window",
        "__local number *local_cells",
        "__local ulong *local_control",
        "__local uint *local_params",
        "__local ushort *local_columns",
        "__local number *local_values",
    ];
    assert_eq!(arguments[7..], expected);
}

/// Compilers of drivers write their warnings to the terminal of the user.
#[test]
fn no_macro_hides_one_that_all_kernels_share() {
    let names = |shared: bool| {
        let files = OPERATIONS.iter().chain(&GENERATED).chain(&STREAMING);
        let base: Vec<&str> = BASE.iter().map(|(name, _)| *name).collect();
        let chosen = files.filter(move |(name, _)| base.contains(name) == shared);
        let lines = chosen.flat_map(|(_, text)| text.lines());
        let defined = lines.filter_map(|line| line.trim_start().strip_prefix("#define "));
        defined.filter_map(|rest| rest.split([' ', '(']).next()).collect::<BTreeSet<_>>()
    };
    let (shared, others) = (names(true), names(false));
    assert!(shared.contains("GET"));
    assert_eq!(shared.intersection(&others).collect::<Vec<_>>(), Vec::<&&str>::new());
}

#[test]
fn every_name_of_the_layout_that_a_kernel_uses_is_defined() {
    for kind in [NumberType::F32, NumberType::F64, NumberType::C32, NumberType::C64] {
        let text = text(kind, false, true);
        let defined: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("#define ").and_then(|rest| rest.split([' ', '(']).next()))
            .collect();
        let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        for word in words.filter(|w| w.starts_with("LACUNA_") && *w != "LACUNA_") {
            assert!(defined.contains(&word), "{word} is not defined");
        }
    }
}

#[test]
fn each_file_opens_with_what_it_computes_and_how_it_is_launched() {
    for (name, source) in OPERATIONS.into_iter().chain(GENERATED).chain(STREAMING) {
        let head: String = source.lines().take_while(|line| line.starts_with("//")).collect();
        for what in ["Bytes moved", "Launch shape", "Assumes"] {
            assert!(head.contains(what), "{name}: no `{what}`");
        }
    }
}

#[test]
fn kernels_for_cuda_have_the_same_entry_points() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels-cuda");
    let Ok(files) = std::fs::read_dir(&folder) else {
        eprintln!("SKIPPED: there are no kernels for CUDA here");
        return;
    };
    let sources: String = files
        .flatten()
        .filter(|file| file.path().extension().is_some_and(|e| e == "cu" || e == "cuh"))
        .filter_map(|file| std::fs::read_to_string(file.path()).ok())
        .collect();
    // CUDA has `start` for `advance` and replays graphs for the rest; no kernel runs in one group, and
    // `sweep` itself sums many segments.
    let here_alone = ["advance", "fold", "program", "spmv_pieces"];
    // Those for levels are compiled from the same text.
    let is_shared = |name: &String| !here_alone.contains(&name.as_str()) && !name.starts_with("level_");
    assert!(sources.contains("#include \"levels.cl\""));
    let shared = all().into_keys().filter(is_shared);
    // One for each number type, or one for all where it knows no numbers.
    let has = |name: &str| ["_##S(", "("].iter().any(|end| sources.contains(&format!(" {name}{end}")));
    let missing: Vec<_> = shared.filter(|name| !has(name)).collect();
    assert!(missing.is_empty(), "not in kernels-cuda by the same name: {}", missing.join(", "));
}
