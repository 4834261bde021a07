//! `lacuna-bench papers`: the measurements of five papers, on similar matrices at present-day sizes, for the methods available here.
use crate::args::PapersArgs;
use crate::run;
use lacuna::formats::FORMATS;
use lacuna::io::look_alikes;
use lacuna::solvers::{METHODS, PRECONDITIONERS};
use lacuna_measure::failure::Result;
use lacuna_measure::number::TypeName::{self, F32, F64};
use lacuna_measure::session::{Ending, MODEL_PROBLEMS, Work, names};
use std::process::ExitCode;

pub(crate) fn run(args: &PapersArgs) -> Result<ExitCode> {
    run::measured(&args.running, |session| {
        for paper in all(args.running.small).iter().filter(|paper| paper.is_among(&args.papers)) {
            session.note(paper.name, &paper.about())?;
            paper.works.iter().try_for_each(|work| session.measure(work))?;
        }
        Ok(())
    })
}

/// The measurements of a paper.
struct Paper {
    name: &'static str,
    what: &'static str,
    /// Formats, methods and preconditioners of the paper: the name here, and a description.
    theirs: &'static [(&'static str, &'static str)],
    /// Other differences from the paper.
    differs: &'static str,
    works: Vec<Work>,
}

impl Paper {
    /// Whether the name has one of the words, or there are none.
    fn is_among(&self, words: &[String]) -> bool {
        let name = self.name.to_lowercase();
        words.is_empty() || words.iter().any(|word| name.contains(&word.to_lowercase()))
    }
    /// Describes what is reproduced, what is missing, and what differs.
    fn about(&self) -> String {
        let here = |name: &str| {
            FORMATS.iter().any(|f| f.name == name)
                || METHODS.iter().any(|m| m.name == name)
                || PRECONDITIONERS.iter().any(|p| p.name == name)
        };
        let (here, missing): (Vec<_>, Vec<_>) = self.theirs.iter().partition(|(name, _)| here(name));
        let words =
            |list: Vec<&(&str, &'static str)>| list.iter().map(|t| t.1).collect::<Vec<_>>().join(", ");
        let missing = match missing.is_empty() {
            true => "nothing is missing".into(),
            false => format!("not here, and so not measured: {}", words(missing)),
        };
        format!("{}. Of what the paper has, here: {}; {missing}. {}", self.what, words(here), self.differs)
    }
}

/// All five. Sizes that take long are left out if `small` is set.
fn all(small: bool) -> Vec<Paper> {
    vec![bell_garland(small), buatois(small), jost(small), wang(small), rupp(small)]
}

fn work(paper: &str, matrices: &[&str], methods: &[&str], formats: &[&str], types: &[TypeName]) -> Work {
    Work {
        suite: Some(paper.into()),
        matrices: names(matrices),
        methods: names(methods),
        formats: names(formats),
        types: types.to_vec(),
        ..Work::default()
    }
}

fn bell_garland(small: bool) -> Paper {
    let name = "Bell and Garland 2008";
    let structured: &[&str] = match small {
        true => &["gen:poisson1d:10000", "gen:poisson2d:100x100", "gen:poisson2d:100x100:9"],
        false => &[
            "gen:poisson1d:1000000",
            "gen:poisson2d:1000x1000",
            "gen:poisson3d:100x100x100",
            "gen:poisson2d:1000x1000:9",
            "gen:poisson3d:100x100x100:27",
        ],
    };
    let part = if small { ":64" } else { "" };
    let unstructured = look_alikes().map(|matrix| format!("gen:alike:{matrix}{part}"));
    let unstructured = unstructured.each_ref().map(String::as_str);
    let types = [F32, F64];
    Paper {
        name,
        what: "Sparse products in each format, structured (Table 3, Figures 27 to 30) and unstructured (Table 4, Figures 31 to 36)",
        theirs: &[
            ("dia", "DIA"),
            ("ell", "ELL"),
            ("csr", "CSR"),
            ("coo", "COO"),
            ("hyb", "HYB"),
            ("pkt", "PKT"),
        ],
        differs: "Structured matrices are theirs; for the unstructured ones stand generated ones of the same rows, columns and entries \
                  a row: nodes of a box that are joined where they are near, of one to six unknowns, for Protein and the finite \
                  element ones; the lattice of QCD as it is; for the others graphs with rows of a like shape. Values are random. Packets are of \
                  rows as they are given, where they partitioned them first: `lacuna spmv MATRIX --reorder packets` has that.",
        works: vec![
            work(name, structured, &["spmv"], &["all"], &types),
            work(name, &unstructured, &["spmv"], &["all"], &types),
        ],
    }
}

fn buatois(small: bool) -> Paper {
    let name = "Buatois et al. 2009";
    // The numbers of unknowns of the parameterisations in Table 3.
    let all = [
        "gen:poisson-p1:40",
        "gen:poisson-p1:80",
        "gen:poisson-p1:162",
        "gen:poisson-p1:322",
        "gen:poisson-p1:820",
    ];
    let matrices = &all[..if small { 2 } else { 5 }];
    let solve = |precond: &str, ending, number| Work {
        precond: Some(precond.into()),
        ending,
        ..work(name, matrices, &["cg"], &["csr", "bcsr2", "bcsr4"], &[number])
    };
    let to_the_end = || Ending::Tolerance { rtol: 1e-5, max_iters: None };
    Paper {
        name,
        what: "Conjugate gradients with Jacobi's preconditioner in single precision, in rows and in 2x2 and 4x4 blocks (Figure 9); in double \
               precision iterations and time to a true residual of 1e-5, which single precision does not reach, with multigrid beside it",
        theirs: &[
            ("csr", "CRS"),
            ("bcsr2", "BCRS 2x2"),
            ("bcsr4", "BCRS 4x4"),
            ("cg", "CG"),
            ("jacobi", "Jacobi's preconditioner"),
        ],
        differs: "Linear triangles on meshes with as many unknowns as those of Table 3 stand for the meshes of the paper; nothing is \
                  reordered; 30 iterations, and until converged.",
        works: vec![
            solve("jacobi", Ending::default(), F32),
            solve("jacobi", to_the_end(), F64),
            solve("amg", to_the_end(), F64),
        ],
    }
}

fn jost(small: bool) -> Paper {
    let name = "Jost et al. 2009";
    let matrices = ["gen:convection:64x64", "gen:convection:128x128", "gen:convection:256x256"];
    let matrices = &matrices[..if small { 1 } else { 3 }];
    let to = |precond: &str, methods: &[&str], (rtol, number)| Work {
        precond: Some(precond.into()),
        ending: Ending::Tolerance { rtol, max_iters: Some(20_000) },
        ..work(name, matrices, methods, &["dia"], &[number])
    };
    let types = [(1e-5, F32), (1e-10, F64)];
    let works = types.into_iter().flat_map(|number| {
        [
            to("none", &["bicgstab", "bicg"], number),
            to("jacobi", &["richardson"], number),
            to("sor", &["richardson"], number),
        ]
    });
    Paper {
        name,
        what: "BiCGStab, BiCG and the iterations of Jacobi and of Gauss and Seidel on matrices stored by diagonals, in single and in double \
               precision: time to a tolerance and the residual that is reached (Figures 1 to 3)",
        theirs: &[
            ("dia", "diagonals"),
            ("bicgstab", "BiCGStab"),
            ("bicg", "BiCG"),
            ("jacobi", "Jacobi's iteration"),
            ("sor", "Gauss and Seidel's iteration"),
            ("compensated", "compensated sums"),
        ],
        differs: "Convection and diffusion on a grid stands for the paper's artificial matrices. Sums are pairwise on every backend. Gauss and \
                  Seidel's iteration goes colour by colour, at most 20 000 iterations each.",
        works: works.collect(),
    }
}

fn wang(small: bool) -> Paper {
    let name = "Wang et al. 2009";
    let matrices: &[&str] = match small {
        true => &["gen:poisson3d:14x14x10"],
        false => &["gen:poisson3d:14x14x10", "gen:poisson3d:58x58x57", "gen:spe10-like:1"],
    };
    let solve = |precond: String| Work {
        precond: Some(precond),
        restart: Some(20),
        ending: Ending::Tolerance { rtol: 1e-2, max_iters: Some(200) },
        ..work(name, matrices, &["gmres"], &["auto"], &[F64])
    };
    let orders = [0, 1, 2, 4, 6, 8].map(|order| solve(format!("block-ilu:size=32,order={order}")));
    Paper {
        name,
        what: "GMRES restarted after 20 iterations to a residual of 1e-2, with block ILU and its polynomial enhancement (Table 1, \
               Figure 3)",
        theirs: &[("gmres", "GMRES"), ("block-ilu", "block ILU and its polynomial enhancement")],
        differs: "Blocks are connected parts of 32 rows; Jacobi's preconditioner is beside; at most 200 iterations. A generated reservoir of 1 122 000 cells stands for \
                  85x220x60, grids of like sizes for Sample 1 and 2.",
        works: orders.into_iter().chain([solve("jacobi".into())]).collect(),
    }
}

fn rupp(small: bool) -> Paper {
    let name = "Rupp et al. 2016";
    let elasticity =
        ["gen:elasticity3d:6", "gen:elasticity3d:12", "gen:elasticity3d:24", "gen:elasticity3d:47"];
    let methods = ["cg", "classical-cg", "bicgstab", "classical-bicgstab", "gmres-once"];
    Paper {
        name,
        what: "Time per iteration of pipelined and classical methods against size, set-up included, linear triangles (Figure 4) and \
               linear elasticity (Figure 5), and the backends against each other (Figure 9)",
        theirs: &[("ell", "ELL"), ("cg", "CG"), ("bicgstab", "BiCGStab"), ("gmres", "GMRES")],
        differs: "Elasticity has sizes near theirs. The matrices of Table I are not fetched: `lacuna compare` takes their files.",
        works: vec![
            work(
                name,
                &MODEL_PROBLEMS[..if small { 3 } else { MODEL_PROBLEMS.len() }],
                &methods,
                &["ell"],
                &[F64],
            ),
            work(name, &elasticity[..if small { 1 } else { 4 }], &methods, &["ell"], &[F64]),
        ],
    }
}
