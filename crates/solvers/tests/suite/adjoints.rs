//! Adjoints of preconditioners: `⟨M x, y⟩ = ⟨x, Mᴴ y⟩` to rounding for each that says it knows its own, with
//! new values too; and what the others say.
use lacuna_engine::{Adjoint, Complex64, Device, Error, Pass, Reference, Result, Scalar};
use lacuna_formats::Csr;
use lacuna_io::Spec;
use lacuna_solvers::{PRECONDITIONERS, Placed, PrecondInfo, Setup, name_of, preconditioner};
use std::sync::Arc;

fn generated<T: Scalar>(name: &str) -> Csr<T> {
    Spec::parse(name).unwrap().build().unwrap()
}

fn info(precond: &str) -> &'static PrecondInfo {
    PRECONDITIONERS.iter().find(|info| info.name == name_of(precond)).unwrap()
}

/// Whether a preconditioner says that it knows its adjoint, before any set-up.
fn knows(precond: &str) -> bool {
    preconditioner::<f64>(precond).unwrap().is_some_and(|kind| kind.knows_adjoint())
}

/// Options that select other code paths.
const VARIANTS: &[&str] = &[
    "ilu0:adjoint=yes,solve=colours",
    "ilu0:adjoint=yes,sweeps=2",
    "ilu0:adjoint=yes,sweeps=3",
    "ssor:omega=1.3,adjoint=yes",
    "ssor:order=natural,adjoint=yes",
    "sor:omega=1.3,order=natural,adjoint=yes",
    "ilut:drop=0.01,order=natural,adjoint=yes",
    "block-jacobi:size=4,adjoint=yes",
    "block-jacobi:size=16,blocks=connected,adjoint=yes",
    "neumann:order=2,adjoint=yes",
    "neumann:order=0,adjoint=yes",
    "multigrid:coarsest=20,smoother=spai0,sweeps=2",
    "ic0:sweeps=2",
];

/// The preconditioners of the list that know their adjoint, asked for it where that is an option, and the
/// variants.
fn with_adjoint() -> Vec<String> {
    let named = |info: &PrecondInfo| match info.options.iter().any(|option| option.key == "adjoint") {
        true => format!("{}:adjoint=yes", info.name),
        false => info.name.into(),
    };
    let listed = PRECONDITIONERS.iter().map(named).filter(|name| knows(name));
    listed.chain(VARIANTS.iter().map(|name| name.to_string())).collect()
}

/// `Φ A Φᴴ` with diagonal phases: Hermitian and complex where `A` is real and symmetric.
fn with_phases(a: &Csr<Complex64>) -> Csr<Complex64> {
    let phases = [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)].map(|(re, im)| Complex64::new(re, im));
    let turned = a.entries().map(|(i, j, v)| v * phases[(i + 3 * j) % 4]).collect();
    a.with_values(turned).unwrap()
}

/// New values on the same pattern, Hermitian where the old ones were, and a stencil where one is needed.
fn renewed<T: Scalar>(a: &Csr<T>, info: &PrecondInfo) -> Csr<T> {
    let step = |i: usize, j: usize| if info.needs_stencil { 0 } else { (i + j) * 7 % 5 };
    let by = |i: usize, j: usize| T::from_real(2.0 + 0.01 * step(i, j) as f64);
    a.with_values(a.entries().map(|(i, j, v)| v * by(i, j)).collect()).unwrap()
}

/// By how much `⟨M x, y⟩` and `⟨x, Mᴴ y⟩` differ, in units of `ε (‖M x‖ ‖y‖ + ‖x‖ ‖Mᴴ y‖)`. `M` is set up for
/// the first matrix and then for each of the others.
fn difference<T: Scalar>(matrices: &[&Csr<T>], precond: &str) -> Result<f64> {
    let (first, later) = matrices.split_first().unwrap();
    let n = first.rows();
    let numbers = |step: usize| -> Vec<T> {
        (0..n).map(|i| T::from_parts((i * step % 13) as f64 - 6.0, (i * step % 7) as f64 - 3.0)).collect()
    };
    let dev = Device::new(Reference::new());
    let on = dev.matrix(Arc::new((*first).clone()))?;
    let mut m = Placed::new(&dev, preconditioner(precond)?.unwrap(), first, *on, Setup::new())?;
    for a in later {
        dev.set_matrix(*on, Arc::new((*a).clone()))?;
        m.update(a, Setup::new())?;
    }
    let owned = [0; 3].map(|_| dev.vector::<T>(n).unwrap());
    let [x, y, z] = owned.each_ref().map(|v| **v);
    dev.upload(&numbers(5), x)?;
    dev.upload(&numbers(11), y)?;
    let sums = dev.cells::<T>(6)?;
    let at = |i: usize| sums.at(i);
    let norms = Pass::new("norms").dot(at(2), x, x).dot(at(3), y, y);
    dev.multi_axpy_dot(norms)?;
    dev.spmv_dot(&m, x, z, Pass::new("left").dot(at(0), z, y).dot(at(4), z, z))?;
    dev.spmv_dot(&Adjoint(&m), y, z, Pass::new("right").dot(at(1), x, z).dot(at(5), z, z))?;
    let got = dev.read(&[0, 1, 2, 3, 4, 5].map(at))?;
    let norm = |i: usize| got[i].re().sqrt();
    let size = norm(4) * norm(3) + norm(2) * norm(5);
    Ok((got[0] - got[1]).modulus() / (T::EPSILON * size))
}

/// Fails unless the adjoint is one, for a matrix and for new values.
fn check<T: Scalar>(a: &Csr<T>, precond: &str) {
    let other = renewed(a, info(precond));
    for matrices in [&[a][..], &[&other, a]] {
        let difference = difference(matrices, precond).unwrap_or_else(|error| panic!("{precond}: {error}"));
        assert!(difference <= a.rows() as f64, "{precond}, {} set-ups: {difference}", matrices.len());
    }
}

#[test]
fn adjoints_are_what_they_should_be() {
    let all = with_adjoint();
    assert!(all.len() > VARIANTS.len() + 5, "{all:?}");
    for precond in &all {
        assert!(knows(precond), "{precond}");
        let grid = "gen:poisson2d:19x18";
        match *info(precond) {
            PrecondInfo { needs_stencil: true, .. } => {
                check(&generated::<f64>(grid), precond);
                check(&generated::<Complex64>(grid), precond);
            }
            PrecondInfo { needs_hermitian: true, .. } => {
                check(&generated::<f64>(grid), precond);
                check(&with_phases(&generated(grid)), precond);
            }
            _ => {
                check(&generated::<f64>("gen:convection:19x18:40"), precond);
                check(&generated::<Complex64>("gen:helmholtz:20x19"), precond);
            }
        }
    }
}

#[test]
fn a_cycle_over_a_hermitian_matrix_is_its_own_adjoint() {
    let grid = "gen:poisson2d:41x39";
    let [a, wind] = [grid, "gen:convection:41x39"].map(generated::<f64>);
    for precond in [
        "amg",
        "amg:coarsest=16",
        "amg:coarsest=30,smoother=chebyshev,sweeps=2",
        "amg:coarsest=1,complexity=1.01,aggregate=greedy",
    ] {
        check(&a, precond);
        check(&with_phases(&generated(grid)), precond);
        let message = refused(&wind, precond);
        assert!(
            message.contains("for a Hermitian matrix") && message.contains("`ilut:adjoint=yes`"),
            "{message}"
        );
    }
    assert!(refused(&a, "amg:precision=single").contains("in full precision"));
    let mut kind = preconditioner::<f64>("amg").unwrap().unwrap();
    assert!(!kind.knows_adjoint());
    let _ = kind.set_up(&a, &mut Setup::new()).unwrap();
    assert!(kind.knows_adjoint());
    let _ = kind.set_up(&wind, &mut Setup::new()).unwrap();
    assert!(!kind.knows_adjoint());
}

#[test]
fn new_values_that_are_not_hermitian_are_refused_where_the_cycle_is_its_own_adjoint() {
    let a = generated::<f64>("gen:poisson2d:41x39");
    let skewed = a.entries().map(|(i, j, v)| if i < j { 0.5 * v } else { v }).collect();
    let skewed = a.with_values::<f64>(skewed).unwrap();
    for recorded in [false, true] {
        let dev = Device::new(Reference::new());
        let on = dev.matrix(Arc::new(a.clone())).unwrap();
        let mut m =
            Placed::new(&dev, preconditioner("amg").unwrap().unwrap(), &a, *on, Setup::new()).unwrap();
        if recorded {
            let owned = [0; 2].map(|_| dev.vector::<f64>(a.rows()).unwrap());
            let [x, y] = owned.each_ref().map(|v| **v);
            dev.spmv_dot(&Adjoint(&m), x, y, Pass::nothing()).unwrap();
        }
        for _ in 0..2 {
            match m.update(&skewed, Setup::new()) {
                Err(Error::Structure { message, .. }) => {
                    assert!(recorded && message.contains("not Hermitian"), "{message}");
                }
                other => assert!(!recorded && other.is_ok(), "{other:?}"),
            }
        }
        m.update(&a, Setup::new()).unwrap();
    }
}

/// The message of the error that an adjoint is not available.
fn refused(a: &Csr<f64>, precond: &str) -> String {
    match difference(&[a], precond) {
        Err(Error::Unsupported { operation, message }) => {
            assert!(operation.contains("the adjoint of preconditioner"), "{operation}");
            message
        }
        other => panic!("{precond}: {other:?}"),
    }
}

#[test]
fn what_was_not_kept_is_refused_with_what_to_ask_for() {
    let a = generated::<f64>("gen:convection:19x18:40");
    for info in PRECONDITIONERS.iter().filter(|info| info.options.iter().any(|o| o.key == "adjoint")) {
        assert!(!knows(info.name), "{}", info.name);
        let message = refused(&a, info.name);
        assert!(message.contains("ask for `adjoint=yes`"), "{}: {message}", info.name);
    }
    let message = refused(&a, "ilu0:adjoint=yes,polynomial=1");
    assert!(message.contains("without a polynomial"), "{message}");
}
