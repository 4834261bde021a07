//! Eigenvalues and singular values: values, vectors and counts with the reference's bits, which are pinned.
use crate::bits::Trace;
use crate::numbers::generated;
use crate::on_both;
use lacuna_eigen::{Check, EigenOutcome, EigenProblem, GeneralProblem, SvdProblem, Which};
use lacuna_engine::{Device, NumberType, Scalar};

/// What is sought.
#[derive(Clone, Copy, Debug)]
enum Sought {
    /// By a method, with a preconditioner.
    Hermitian(Which, &'static str, &'static str),
    Any,
    Singular,
}

/// What is sought of which matrix, and the digests in f32, f64, c32 and c64.
type Case = (Sought, &'static str, [u64; 4]);

const CASES: [Case; 6] = [
    (
        Sought::Hermitian(Which::Smallest, "lobpcg", "jacobi"),
        "gen:poisson2d:24x23",
        [0xca4b_c764_5a87_480b, 0xe447_59ad_4f66_767a, 0x7831_8212_38d6_c262, 0x32e9_50f9_ff37_af9a],
    ),
    (
        Sought::Hermitian(Which::Smallest, "lobpcg", "amg:coarsest=40"),
        "gen:poisson3d:9x8x8",
        [0xf901_8770_460b_f345, 0xa11f_0567_970f_45a8, 0xd323_033b_91be_d94a, 0x769c_1b14_fe9d_db4a],
    ),
    (
        Sought::Hermitian(Which::Largest, "lobpcg", "none"),
        "gen:poisson2d:24x23",
        [0x22c2_8561_528d_b116, 0x7024_09fc_1461_dd89, 0xc711_8546_bc53_816a, 0x5215_b617_c162_1ad5],
    ),
    (
        Sought::Hermitian(Which::Largest, "lanczos", "none"),
        "gen:poisson2d:24x23",
        [0x425c_0f27_a4e4_a8bf, 0xd543_b4b9_3bf0_9860, 0x5ab0_faab_5688_41de, 0xfb8f_61ec_6d8e_2266],
    ),
    (
        Sought::Any,
        "gen:convection:25x24:10",
        [0x5d78_8d1f_501c_14d5, 0x3fc1_b19e_b757_b0f1, 0x5d78_8d1f_501c_14d5, 0x3fc1_b19e_b757_b0f1],
    ),
    (
        Sought::Singular,
        "gen:convection:25x24:10",
        [0x84f5_d67e_eb8e_97e5, 0x0e06_2e81_b528_3c41, 0x03a8_4ef5_420c_6d2e, 0x885c_16e7_7096_9e96],
    ),
];

/// Searches, their second starts among them.
///
/// # Panics
/// If something differs.
pub fn agree<T: Scalar>(make: fn() -> Device) {
    let kinds = [NumberType::F32, NumberType::F64, NumberType::C32, NumberType::C64];
    let kind = kinds.iter().position(|kind| *kind == T::KIND).unwrap();
    for (sought, matrix, digests) in CASES {
        let context = format!("{sought:?} of {matrix}");
        on_both!(make, context, |dev| {
            let a = generated::<T>(matrix);
            let mut trace = Trace::<T>::new();
            match sought {
                Sought::Hermitian(which, method, precond) => {
                    let problem = EigenProblem::new(a).which(which).method(method).preconditioner(precond);
                    let found = problem.count(3).check(Check::Probed).max_iters(400).solve(dev).unwrap();
                    let EigenOutcome { reason, complete, products, second_starts, .. } = &found.outcome;
                    trace.fact("outcome", (reason, complete, products, second_starts));
                    trace.reals("values", &found.values);
                    found.vectors.iter().for_each(|x| trace.numbers("vector", x));
                }
                Sought::Any => {
                    let found = GeneralProblem::new(&a).unwrap().count(3).max_iters(400).solve(dev).unwrap();
                    trace.fact("outcome", (found.outcome.reason, found.outcome.products));
                    let parts: Vec<f64> =
                        found.values.iter().flat_map(|value| [value.re, value.im]).collect();
                    trace.reals("values", &parts);
                }
                Sought::Singular => {
                    let found = SvdProblem::new(a).count(3).max_iters(400).solve(dev).unwrap();
                    trace.fact("outcome", (found.outcome.reason, found.outcome.products));
                    trace.reals("values", &found.values);
                    found.left.iter().chain(&found.right).for_each(|x| trace.numbers("vector", x));
                }
            }
            let digest = trace.digest();
            assert_eq!(digest, digests[kind], "the bits of {sought:?} of {matrix} changed: {digest:#018x}");
            trace
        });
    }
}
