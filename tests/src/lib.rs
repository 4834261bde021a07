//! The conformance suite: one source, run on every backend, in every number type.
//!
//! A case is a function generic over `T: Scalar`. It runs on a device that a function makes and on the serial
//! [`Reference`](lacuna_engine::Reference) and compares **by equal bits** (a NaN equals any NaN). A backend's
//! own test file says how to create the backend, and [`conformance!`] generates a test for every case:
//!
//! ```ignore
//! lacuna_tests::conformance!(threads_2, "cpu", || Cpu::with(two_threads()), [f32, f64, Complex32, Complex64]);
//! ```
//!
//! If a backend cannot be created, its tests print a warning and are skipped; `LACUNA_REQUIRE=cpu,opencl`
//! makes that a failure. A backend that does not support a case yet names it with the reason: `…, except
//! &[("products::own_format", "no kernel")]`.
pub mod basis;
pub mod bits;
pub mod cells;
pub mod columns;
pub mod concurrent;
pub mod counting;
pub mod digests;
pub mod eigenvalues;
pub mod foreign_formats;
pub mod formats;
pub mod generated;
pub mod handles;
pub mod hostile;
pub mod instances;
pub mod least_squares;
pub mod narrow;
pub mod numbers;
pub mod operators;
pub mod passes;
pub mod preconditioners;
pub mod products;
pub mod programs;
pub mod random;
pub mod right_hand_sides;
pub mod solves;
pub mod sparse_algebra;
pub mod table;
pub mod triangles;
pub mod wrong;

pub use paste::paste;

/// Hands the groups of the suite with their cases to a macro, after the tokens given: all that is run on a backend is listed
/// here.
#[macro_export]
macro_rules! every_case {
    (($($callback:tt)*) $($before:tt)*) => {
        $($callback)*! { $($before)*
            passes: canonical_sums sums_in_a_loop maxima maxima_in_a_loop every_form_of_term aliasing updates_in_order lengths large
                wide_passes many_passes_in_a_row formulas_around;
            products: shapes lanes riding_passes own_format;
            formats: shapes structures stencils grids long_rows few_heavy_rows large not_finite adjoints solves;
            columns: shapes structures large programs refusals;
            sparse_algebra: products sets refusals set_ups large_levels hierarchies;
            triangles: shapes chains wide_levels blocks programs refusals;
            basis: dots axpys blocks zero_coefficients modified_columns;
            cells: arithmetic special_values tests rotations;
            operators: simple composed transposed adjoints own host host_panics formulas_first;
            programs: flow nested_conditions restarts_without_confirmation stops confirmations histories no_ops_after_stop
                endless_is_cancelled guarded riding_passes_come_after;
            random: passes_agree products_agree bases_agree fusion_changes_nothing;
            solves: agree maximum_norm parallel_sizes again warm_start cancelled gmres_variants scaled_exactly;
            preconditioners: multigrid grids variants own new_values;
            table: equal_bits;
            digests: agree;
            eigenvalues: agree;
            least_squares: shapes;
            right_hand_sides: agree;
            narrow: passes copies refined products bases two_levels two_narrow_levels;
            concurrent: several_backends_at_once;
            handles: stale_handles stale_cells foreign_handles;
            foreign_formats: lies new_values panics panics_in_solves triangles watch_panics;
            hostile: zero_right_hand_side exact_start tolerance_zero huge_and_tiny not_finite_input
                wrong_lengths pass_rules program_rules tiny_systems singular_breakdown refused_allocations
                endless_limits;
        }
    };
}

/// Generates a test for every case, for one way to create a backend and a list of number types. `around` names a function that
/// gets the name of each case and runs it.
#[macro_export]
macro_rules! conformance {
    ($module:ident, $backend:literal, $make:expr, [$($type:ident),* $(,)?]) => {
        $crate::conformance!($module, $backend, $make, [$($type),*], except &[]);
    };
    ($module:ident, $backend:literal, $make:expr, [$($type:ident),* $(,)?], except $except:expr) => {
        $crate::conformance!($module, $backend, $make, [$($type),*], except $except, around $crate::run_case);
    };
    ($module:ident, $backend:literal, $make:expr, [$($type:ident),* $(,)?], except $except:expr, around $around:path) => {
        mod $module {
            #[allow(unused_imports)]
            use super::*;
            fn runs(case: &str) -> bool {
                static AVAILABLE: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
                let except: &[(&str, &str)] = $except;
                *AVAILABLE.get_or_init(|| $crate::available($backend, ($make)().err()))
                    && $crate::not_excepted($backend, case, except)
            }
            $($crate::paste! {
                mod [<in_ $type:lower>] {
                    #[allow(unused_imports)]
                    use super::*;
                    $crate::every_case! { ($crate::conformance) @cases $make, $type, $around; }
                }
            })*
        }
    };
    (@cases $make:expr, $type:ident, $around:path; $($file:ident: $($case:ident)*;)*) => {$(
        mod $file {
            #[allow(unused_imports)]
            use super::*;
            $(
                #[test]
                fn $case() {
                    let name = concat!(stringify!($file), "::", stringify!($case));
                    if super::super::runs(name) {
                        $around(name, &|| {
                            $crate::$file::$case::<$type>(|| $crate::device(($make)().expect("a backend that was made before")));
                        });
                    }
                }
            )*
        }
    )*};
}

/// Runs a case: how [`conformance!`] does it unless it is told otherwise.
pub fn run_case(_name: &str, case: &dyn Fn()) {
    case();
}

/// For [`conformance!`]: cases that take minutes and show little that others do not, which `LACUNA_CONFORMANCE=all` runs.
pub fn if_all(_: &str, case: &dyn Fn()) {
    if std::env::var("LACUNA_CONFORMANCE").is_ok_and(|which| which == "all") {
        case();
    }
}

/// A device on a backend: [`conformance!`] names nothing of the engine, which a caller need not have as a dependency.
pub fn device(backend: impl lacuna_engine::Backend) -> lacuna_engine::Device {
    lacuna_engine::Device::new(backend)
}

/// The serial reference, with memory that is freed with it.
pub fn reference() -> lacuna_engine::Scope {
    lacuna_engine::Device::new(lacuna_engine::Reference::new()).scope()
}

/// Whether a backend could be created. If not, prints a warning, or fails if `LACUNA_REQUIRE` names it.
///
/// # Panics
/// If the backend is required and could not be created.
pub fn available(backend: &str, error: Option<lacuna_engine::Error>) -> bool {
    let Some(error) = error else { return true };
    let required = std::env::var("LACUNA_REQUIRE").unwrap_or_default();
    if required.split(',').any(|name| name.trim() == backend) {
        panic!("LACUNA_REQUIRE names `{backend}`, which is not there: {error}");
    }
    loudly(&format!("SKIPPED: every test of the backend `{backend}`, which is not there: {error}"));
    false
}

/// Whether a backend supports a case. If not, prints the reason.
pub fn not_excepted(backend: &str, case: &str, except: &[(&str, &str)]) -> bool {
    match except.iter().find(|(name, _)| *name == case) {
        Some((_, reason)) => {
            loudly(&format!("SKIPPED: {case} on `{backend}`: {reason}"));
            false
        }
        None => true,
    }
}

/// Prints past the test harness, which captures the output of passing tests.
pub fn loudly(text: &str) {
    use std::io::Write;
    // If even this fails, nothing better can be done.
    let _ = writeln!(std::io::stderr(), "\n*** {text} ***");
}
