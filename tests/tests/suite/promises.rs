//! The figures that the design promises: operations, bytes, vectors and waits of each method.
use lacuna_cpu::Cpu;
use lacuna_engine::{
    Complex32, Complex64, Device, Format, LinOp, OpKind, Reference, Scalar, Section, WithAdjoint,
};
use lacuna_formats::Csr;
use lacuna_io::Spec;
use lacuna_solvers::{Jacobi, METHODS, Options, Orthogonalization, Placed, Setup, Solver, Stop, method};
use lacuna_tests::counting::{Counting, Counts, refined_solve_transfers_b_and_x};
use std::sync::Arc;

fn matrix() -> Csr<f64> {
    Spec::parse("gen:poisson2d:20x20").unwrap().build().unwrap()
}

/// The preconditioner of a solver.
#[derive(Clone, Copy, Debug, PartialEq)]
enum M {
    None,
    Jacobi,
    /// Jacobi's, which methods do not know to be a diagonal.
    Opaque,
}

impl M {
    /// Jacobi's, or one that applies it.
    fn of<'a>(self, jacobi: &'a Placed<f64>, opaque: &'a dyn LinOp<f64>) -> Option<&'a dyn LinOp<f64>> {
        match self {
            M::None => None,
            M::Jacobi => Some(jacobi),
            M::Opaque => Some(opaque),
        }
    }
}

/// The counts of a counting device so far; resets them.
fn take(dev: &Device) -> Counts {
    dev.with(Counting::<Reference>::take).unwrap()
}

/// A solver on a counting backend.
fn solver(a: &Csr<f64>, name: &str, precondition: M, options: &Options) -> (Device, Solver<f64>, Counts) {
    let dev = Device::new(Counting::new(Reference::new()));
    let operator = dev.matrix(Arc::new(a.clone())).unwrap();
    let jacobi = Placed::new(&dev, Box::new(Jacobi), a, *operator, Setup::new()).unwrap();
    let opaque = WithAdjoint(&jacobi, &jacobi);
    let m = precondition.of(&jacobi, &opaque);
    let operator = WithAdjoint(&operator, &operator);
    take(&dev);
    let stop = Stop::default().rtol(0.0).max_iters(20);
    let method = method(name, options).unwrap();
    let solver = Solver::new(&dev, &operator, m, &*method, stop).unwrap();
    let made = take(&dev);
    (dev, solver, made)
}

/// Method; preconditioner; operations per iteration; products per iteration; vectors moved per
/// iteration besides the matrix; vectors created, including `b` and `x`.
const PROMISED: [(&str, M, f64, usize, usize, usize); 32] = [
    // A p: p, q. Step: x, r, p twice, q.
    ("cg", M::None, 2.0, 1, 2 + 7, 2 + 3),
    // A p: p, q, d. Step: x, r, p twice, q, d.
    ("cg", M::Jacobi, 2.0, 1, 3 + 8, 2 + 3),
    // A p with M q in its pass: p, q, d, M q. Step: x, r, z, p twice, q, M q.
    ("cg", M::Opaque, 2.0, 1, 4 + 10, 2 + 5),
    // A p: p, q. Descend: x, r twice, p, q. Turn: p twice, r.
    ("classical-cg", M::None, 3.0, 1, 2 + 6 + 3, 2 + 3),
    // M r in the pass of the descent: d, z. Turn: p twice, z.
    ("classical-cg", M::Jacobi, 3.0, 1, 2 + 8 + 3, 2 + 4),
    // A p: p, v, r₀. Half: r, v, s. A s: s, t, r₀. Step: x, p twice, r, s, t, v, r₀.
    ("bicgstab", M::None, 4.0, 2, 3 + 3 + 3 + 9, 2 + 6),
    // The same with M p as p. M s in the pass of the half step: d, M s. A M s reads s. Step: d.
    ("bicgstab", M::Jacobi, 4.0, 2, 3 + 5 + 4 + 10, 2 + 7),
    // M p alone, as the iteration begins with it: p, d, M p. Step: M p and M s in place of s.
    ("bicgstab", M::Opaque, 5.0, 2, 3 + 3 + 5 + 4 + 11, 2 + 8),
    // A p: p, v, r₀. Half: 3. A s: s, t. Step: x twice, p, s, t, r, r₀. Turn: p twice, r, v.
    ("classical-bicgstab", M::None, 5.0, 2, 3 + 3 + 2 + 7 + 4, 2 + 6),
    ("classical-bicgstab", M::Jacobi, 6.0, 2, 3 + 3 + 5 + 3 + 8 + 4, 2 + 8),
    // A w: w, n. Step: x, r, w, z, s, p twice, n.
    ("pipelined-cg", M::None, 2.0, 1, 2 + 13, 2 + 6),
    // M w alone: w, d, m. A m with the step: m, n, x, r, u, w, z, s, q, p twice.
    ("pipelined-cg", M::Jacobi, 2.0, 1, 3 + 2 + 16, 2 + 9),
    // A p: p, q, r. Descend: x, r twice, p, q. Conjugate: q, r. Turn: p twice, r.
    ("flexible-cg", M::None, 4.0, 1, 3 + 6 + 2 + 3, 2 + 3),
    ("flexible-cg", M::Jacobi, 4.0, 1, 3 + 8 + 2 + 3, 2 + 4),
    // Step: x, r twice, p, q. A r: 2. Turn: p, q twice, r, w.
    ("cr", M::None, 3.0, 1, 6 + 2 + 6, 2 + 4),
    ("cr", M::Jacobi, 3.0, 1, 9 + 2 + 8, 2 + 6),
    // A v: v, y. Lanczos: v, v twice, y. Step: w, w twice, v, x twice.
    ("minres", M::None, 3.0, 1, 2 + 4 + 6, 2 + 5),
    ("minres", M::Jacobi, 3.0, 1, 2 + 6 + 6, 2 + 7),
    // Four products, and the vectors moved for two directions, two residuals and a minimum over two vectors.
    ("bicgstab-l", M::None, 11.0, 4, 53, 2 + 7),
    ("bicgstab-l", M::Jacobi, 11.0, 4, 62, 2 + 9),
    // Five iterations with four shadow vectors move 109 vectors, 122 with M.
    ("bicg", M::None, 4.0, 2, 21, 2 + 6),
    ("bicg", M::Jacobi, 4.0, 2, 24, 2 + 8),
    // A p: p, v, r₀. Half: u, v, q, t. A t: t, v; x, r twice, r₀. Turn: r, q, p twice, u.
    ("cgs", M::None, 4.0, 2, 3 + 4 + 7 + 5, 2 + 7),
    ("cgs", M::Jacobi, 5.0, 2, 24, 2 + 9),
    // As BiCG, plus smoothing: x, u twice, y, r.
    ("qmr", M::None, 5.0, 2, 21 + 6, 2 + 8),
    ("qmr", M::Jacobi, 5.0, 2, 24 + 6, 2 + 10),
    ("tfqmr", M::None, 5.0, 2, 33, 2 + 6),
    ("tfqmr", M::Jacobi, 6.0, 2, 38, 2 + 7),
    // Step: x twice, r. A x: x, q, r, b. Three more vectors to estimate the damping.
    ("richardson", M::None, 2.0, 1, 3 + 4, 2 + 2 + 3),
    ("richardson", M::Jacobi, 2.0, 1, 5 + 4, 2 + 3),
    // A d: d, q; x, r twice. Turn: d twice, r. Three more vectors to estimate the interval, four with M.
    ("chebyshev", M::None, 2.0, 1, 6 + 3, 2 + 3 + 3),
    ("chebyshev", M::Jacobi, 2.0, 1, 6 + 5, 2 + 4 + 4),
];

#[test]
fn operations_bytes_and_vectors_of_an_iteration() {
    let a = matrix();
    let n = a.rows();
    let matrix = (n + 1 + a.nnz()) * 4 + a.nnz() * 8;
    assert_eq!(Format::bytes(&a), matrix);
    let mut wrong = Vec::new();
    for (name, precondition, ops, products, moved, stored) in PROMISED {
        let (_, solver, made) = solver(&a, name, precondition, &Options::default());
        let program = solver.program();
        let found = (
            program.ops_per_iteration(),
            (program.bytes_per_iteration() - products * matrix) as f64 / (8 * n) as f64,
            made.vectors,
        );
        let promised = (ops, moved as f64, stored);
        if found != promised {
            wrong.push(format!("{name}, {precondition:?}: promised {promised:?}, found {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "operations, vectors moved, vectors stored:\n{}", wrong.join("\n"));
}

/// The numbers of products and vectors on the page on methods.
#[test]
fn the_page_on_methods_is_true() {
    let page = include_str!("../../../docs/guide/which.md");
    let (a, mut seen) = (matrix(), Vec::new());
    for line in page.lines().filter(|line| line.starts_with("| `") && line.matches('|').count() == 8) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let name = cells[1].split('`').nth(1).unwrap();
        seen.push(name);
        let number = |text: &str| text.parse::<usize>().ok();
        for (precondition, vectors) in [(M::None, cells[3]), (M::Opaque, cells[4])] {
            let Some(vectors) = number(vectors) else { continue };
            let (_, solver, made) = solver(&a, name, precondition, &Options::default());
            assert_eq!(made.vectors, vectors + 2, "{name}, {precondition:?}: vectors beside b and x");
            let each = solver.program().section(Section::Each);
            let products = each.iter().filter(|op| matches!(op.kind, OpKind::Spmv { .. })).count();
            assert_eq!(Some(products / solver.program().counts()), number(cells[2]), "{name}: products");
        }
    }
    let theory = include_str!("../../../docs/theory/methods.md");
    for line in theory.lines().filter(|line| line.starts_with("| `") && !line.contains("basis")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let name = cells[1].trim_matches('`');
        let sweeps: f64 = cells[3].split([' ', ',']).next().unwrap().parse().unwrap();
        let (_, solver, _) = solver(&a, name, M::None, &Options::default());
        assert_eq!(solver.program().ops_per_iteration(), sweeps, "{name}: sweeps");
    }
    let listed: Vec<_> = METHODS.iter().map(|info| info.name).collect();
    assert!(listed.iter().all(|name| seen.contains(name)), "missing of {listed:?}: found {seen:?}");
}

#[test]
fn gmres_stores_its_basis_and_little_else() {
    let a = matrix();
    for (precondition, beside) in [(M::None, 0), (M::Jacobi, 1)] {
        let options = Options::default().restart(10);
        let (_, _, made) = solver(&a, "gmres", precondition, &options);
        assert_eq!(made.vectors, 2 + 11 + 1 + beside, "{precondition:?}"); // one is the best iterate
    }
}

/// One iteration of classical GMRES reads the current basis twice: to project, and to subtract.
#[test]
fn gmres_moves_its_basis_twice() {
    let (a, m) = (matrix(), 10);
    let n = a.rows();
    let options = Options::default().restart(m).orthogonalization(Orthogonalization::Classical);
    let (_, solver, _) = solver(&a, "gmres", M::None, &options);
    // Iteration j: A v: 2. Project: j + 1 columns, w. Subtract: j + 1 columns, w twice. Normalise: v twice.
    let vectors: usize = (0..m).map(|j| 2 + 2 + (j + 2) + (j + 3)).sum();
    let matrix = Format::bytes(&a);
    assert_eq!(solver.program().bytes_per_iteration(), (m * matrix + vectors * 8 * n) / m);
}

/// Operations under a test need not move anything, and an unfinished cycle moves less.
#[test]
fn the_fewest_bytes_are_counted() {
    let (a, m) = (matrix(), 10u64);
    let program = |orthogonalization| {
        let options = Options::default().restart(m as usize).orthogonalization(orthogonalization);
        let (_, solver, _) = solver(&a, "gmres", M::None, &options);
        let program = solver.program();
        assert_eq!(program.bytes_of(m) / m, program.bytes_per_iteration() as u64);
        [1, 3, m, m + 3].map(|iterations| program.bytes_of(iterations))
    };
    let [once, selective, twice] =
        [Orthogonalization::Classical, Orthogonalization::Selective, Orthogonalization::ClassicalTwice]
            .map(program);
    assert_eq!(once[2], selective[2]);
    assert_eq!(once[3], once[1] + once[2]);
    assert!(once[1] > 3 * once[0] && once[1] < 3 * once[2] / 10 && once[2] < twice[2], "{once:?} {twice:?}");
}

/// A solve from zero: one upload, one download, one wait for its results; nothing created or freed, in the first
/// solve and the second.
#[test]
fn a_solve_waits_once_and_makes_nothing() {
    let a = matrix();
    let b = vec![1.0; a.rows()];
    for name in ["cg", "classical-cg", "bicgstab", "classical-bicgstab", "gmres"] {
        for precondition in [M::None, M::Jacobi] {
            let (dev, mut solver, _) = solver(&a, name, precondition, &Options::default());
            take(&dev); // A preconditioner that nothing uses was dropped, and is freed by this call.
            for _ in 0..2 {
                solver.solve(&b, &mut vec![0.0; a.rows()]).unwrap();
                let counts = take(&dev);
                let expected = Counts {
                    steps: counts.steps,
                    uploads: 1,
                    downloads: 1,
                    copies: 0,
                    reads: 1,
                    vectors: 0,
                    matrices: 0,
                    freed: 0,
                };
                assert_eq!(counts, expected, "{name}, {precondition:?}");
                assert!(counts.steps > 0, "{name}, {precondition:?}");
            }
        }
    }
}

/// What goes between the two systems of a refined solve stays on the device.
#[test]
fn a_refined_solve_transfers_b_and_x() {
    refined_solve_transfers_b_and_x::<f64, _>(Reference::new());
    refined_solve_transfers_b_and_x::<Complex64, _>(Cpu::new().unwrap());
}

/// The operations that run are those recorded: twenty iterations run twenty times the operations of one, plus
/// the setup and the confirmation.
#[test]
fn twenty_iterations_run_their_operations_and_few_more() {
    // Large enough that no method finishes or restarts within twenty iterations.
    let a: Csr<f64> = Spec::parse("gen:poisson2d:60x60").unwrap().build().unwrap();
    for (name, precondition, ops, ..) in PROMISED {
        let (dev, mut solver, _) = solver(&a, name, precondition, &Options::default());
        let outcome = solver.solve(&vec![1.0; a.rows()], &mut vec![0.0; a.rows()]).unwrap();
        assert_eq!(outcome.iterations, 20, "{name}: {outcome:?}");
        let program = solver.program();
        let around = program.section(Section::Setup).len() + 2 * program.section(Section::Restart).len();
        let steps = take(&dev).steps;
        let least = 20 * ops as usize;
        assert!((least - 1..=least + around).contains(&steps), "{name}: {steps} operations run");
    }
}

/// The bytes of a matrix are those of its arrays, in every number type.
#[test]
fn bytes_follow_the_number_type() {
    fn bytes<T: Scalar>() -> usize {
        let a: Csr<T> = Spec::parse("gen:poisson2d:20x20").unwrap().build().unwrap();
        let indices = (a.rows() + 1 + a.nnz()) * 4;
        (Format::bytes(&a) - indices) / a.nnz()
    }
    let found = [bytes::<f32>(), bytes::<f64>(), bytes::<Complex32>(), bytes::<Complex64>()];
    assert_eq!(found, [4, 8, 8, 16]);
}

/// On the CPU, all passes of these methods have a form with a loop of its own: a change to a method must not lose one.
#[test]
fn sweeps_of_methods_are_loops_on_the_cpu() {
    let a = matrix();
    let looped = ["cg", "classical-cg", "bicgstab", "classical-bicgstab", "gmres"];
    for info in METHODS.iter().filter(|info| looped.contains(&info.name)) {
        for precondition in [M::None, M::Jacobi, M::Opaque] {
            let dev = Device::new(Cpu::new().unwrap());
            let operator = dev.matrix(Arc::new(a.clone())).unwrap();
            let jacobi = Placed::new(&dev, Box::new(Jacobi), &a, *operator, Setup::new()).unwrap();
            let opaque = WithAdjoint(&jacobi, &jacobi);
            let m = precondition.of(&jacobi, &opaque);
            let method = method(info.name, &Options::default()).unwrap();
            let solver = Solver::new(&dev, &operator, m, &*method, Stop::default()).unwrap();
            let plan = dev.plan(solver.program().clone()).unwrap();
            let (sweeps, loops) = dev.with(|cpu: &mut Cpu| cpu.loops(plan.id())).unwrap().unwrap();
            assert_eq!(loops, sweeps, "{}, {precondition:?}", info.name);
            assert!(sweeps > 0 || info.name == "gmres", "{}", info.name);
        }
    }
}
