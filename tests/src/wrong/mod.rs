//! A backend that computes wrongly on purpose: every group of the suite must notice.
//!
//! [`Wrong`] is the serial reference with one [`Fault`]. [`noticed!`](crate::noticed) makes a test of each group of the suite: the
//! smallest of its cases that do must fail for the group's faults, and pass without a fault, so that it is the fault that is
//! noticed.
mod algebra;
mod backend;
mod pass;

pub use backend::Wrong;

use crate::instances::Case;
use lacuna_engine::Device;
use std::panic::{AssertUnwindSafe, catch_unwind};

macro_rules! faults {
    ($($(#[$doc:meta])* $fault:ident)*) => {
        /// What a [`Wrong`] backend does wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Fault { $($(#[$doc])* $fault,)* }

        impl Fault {
            /// All of them.
            pub const ALL: &[Fault] = &[$(Fault::$fault,)*];

            /// Makes a device with this fault.
            pub fn make(self) -> fn() -> Device {
                match self { $(Fault::$fault => || Device::new(Wrong::new(Some(Fault::$fault))),)* }
            }
        }
    };
}

faults! {
    /// Dot products are summed from the last term to the first.
    SumsBackwards
    /// So are those of passes that follow a product or a basis operation, and only those.
    RidingSumsBackwards
    /// So is every second one, as if threads took turns at random.
    SumsAtRandom
    /// A maximum is a sum.
    MaximaSummed
    /// A maximum leaves out what is NaN.
    NanLeftOut
    /// An update multiplies and adds where it should round once.
    FmaSplit
    /// A row sum leaves out a lane of columns.
    LaneLeftOut
    /// A row sum takes even columns before odd ones.
    RowsReordered
    /// So does that of a product of several columns, and only that.
    ColumnsReordered
    /// Narrow vectors are not rounded.
    NarrowKept
    /// `w − V h` is summed from the last column to the first.
    BasisBackwards
    /// Columns whose coefficient is 0 are read.
    ZerosRead
    /// A row of a triangular solve is summed from the last entry to the first.
    SolveBackwards
    /// A host function gets the argument of the call before.
    StaleArgument
    /// A quotient of cells is a product with the reciprocal.
    ReciprocalTaken
    /// What a cell instruction writes is rounded to the narrower type.
    CellsRounded
    /// `a ≤ b` holds if one of them is NaN.
    NanPasses
    /// Tests at the head of an operation are ignored.
    TestsIgnored
    /// Operations that follow a halt in their section run.
    HaltIgnored
    /// Instructions after a sweep run ahead of it.
    InstructionsEarly
    /// Every run says that it met its limit.
    AlwaysLimit
    /// Every run says that it converged.
    AlwaysConverged
    /// Every run counts an iteration too many.
    IterationsOff
    /// New values of a matrix are ignored.
    OldValues
    /// Errors are swallowed.
    Silent
    /// A vector that does not fit is made empty.
    Shrunk
    /// The last entry of a sparse product is off by its last bit.
    LastBit
    /// A set of distant rows lacks its last one.
    SetTooSmall
}

/// The cases of a group that must notice faults.
///
/// # Panics
/// For a group without any.
fn noticing(group: &str) -> &'static [(&'static str, &'static [Fault])] {
    use Fault::*;
    match group {
        "passes" => &[
            ("canonical_sums", &[SumsBackwards]),
            ("maxima", &[MaximaSummed, NanLeftOut]),
            ("maxima_in_a_loop", &[MaximaSummed]),
            ("every_form_of_term", &[FmaSplit]),
            ("formulas_around", &[InstructionsEarly]),
        ],
        "products" => &[("lanes", &[LaneLeftOut, RowsReordered]), ("riding_passes", &[RidingSumsBackwards])],
        "formats" => &[("adjoints", &[LaneLeftOut, RowsReordered])],
        "columns" => &[("shapes", &[ColumnsReordered]), ("refusals", &[Silent])],
        "sparse_algebra" => &[("products", &[LastBit]), ("sets", &[SetTooSmall]), ("refusals", &[Silent])],
        "triangles" => &[("chains", &[SolveBackwards]), ("programs", &[OldValues]), ("refusals", &[Silent])],
        "basis" => {
            &[("dots", &[SumsBackwards]), ("axpys", &[BasisBackwards]), ("zero_coefficients", &[ZerosRead])]
        }
        "cells" => &[("arithmetic", &[ReciprocalTaken, CellsRounded]), ("tests", &[NanPasses])],
        "operators" => &[("simple", &[SumsBackwards, FmaSplit]), ("host_panics", &[StaleArgument, Silent])],
        "programs" => &[
            ("flow", &[AlwaysLimit, IterationsOff]),
            ("nested_conditions", &[TestsIgnored]),
            ("no_ops_after_stop", &[HaltIgnored]),
        ],
        "random" => {
            &[("passes_agree", &[SumsBackwards, FmaSplit]), ("products_agree", &[RidingSumsBackwards])]
        }
        "solves" => &[
            ("gmres_variants", &[SumsBackwards, SumsAtRandom, AlwaysLimit]),
            ("maximum_norm", &[MaximaSummed]),
        ],
        "preconditioners" => &[("grids", &[SumsBackwards])],
        "table" => &[("equal_bits", &[SumsBackwards, LaneLeftOut, SolveBackwards])],
        "digests" => &[("agree", &[SumsBackwards, LaneLeftOut])],
        "eigenvalues" => &[("agree", &[SumsBackwards, ColumnsReordered, BasisBackwards])],
        "least_squares" => &[("shapes", &[SumsBackwards])],
        "right_hand_sides" => &[("agree", &[RowsReordered])],
        "narrow" => {
            &[("passes", &[NarrowKept]), ("copies", &[NarrowKept, Silent]), ("bases", &[SumsBackwards])]
        }
        "concurrent" => &[("several_backends_at_once", &[SumsBackwards])],
        "handles" => &[("stale_handles", &[Silent])],
        "foreign_formats" => &[("panics", &[Silent]), ("new_values", &[OldValues])],
        "hostile" => &[
            ("exact_start", &[IterationsOff]),
            ("endless_limits", &[AlwaysLimit]),
            ("singular_breakdown", &[AlwaysConverged]),
            ("refused_allocations", &[Shrunk]),
        ],
        _ => panic!("name the faults that the group `{group}` must notice, in tests/src/wrong/mod.rs"),
    }
}

/// Fails unless a group notices its faults, and only them.
///
/// # Panics
/// If a case fails without a fault, or passes with one.
pub fn notices(group: &str, cases: &[(&str, Case)]) {
    for (name, faults) in noticing(group) {
        let case = cases.iter().find(|(case, _)| case == name);
        let (_, case) = case.unwrap_or_else(|| panic!("the group `{group}` has no case `{name}`"));
        case(|| Device::new(Wrong::new(None)));
        for fault in *faults {
            let failed = catch_unwind(AssertUnwindSafe(|| case(fault.make()))).is_err();
            assert!(failed, "{group}::{name} passes with {fault:?}");
        }
    }
}

/// Generates a test for every group: see [`notices`].
#[macro_export]
macro_rules! noticed {
    () => {
        $crate::every_case! { ($crate::noticed) @groups }
    };
    (@groups $($file:ident: $($case:ident)*;)*) => {
        /// The groups of the suite.
        const GROUPS: &[&str] = &[$(stringify!($file)),*];
        $(
            #[test]
            fn $file() {
                $crate::wrong::notices(
                    stringify!($file),
                    &[$((stringify!($case), $crate::$file::$case::<f64>)),*],
                );
            }
        )*
    };
}

/// Fails unless every fault is one that some of the groups must notice.
///
/// # Panics
/// If one is not.
pub fn every_fault_is_used(groups: &[&str]) {
    let used: Vec<Fault> =
        groups.iter().flat_map(|group| noticing(group)).flat_map(|(_, faults)| *faults).copied().collect();
    for fault in Fault::ALL {
        assert!(used.contains(fault), "{fault:?}");
    }
}
