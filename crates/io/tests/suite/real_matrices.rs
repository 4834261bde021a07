//! Real matrices, from the folder given by `LACUNA_MATRICES`.
use lacuna_engine::{Complex64, Scalar};
use lacuna_formats::{Csr, Structure};
use lacuna_io::mm::{
    Field, ReadOptions, Symmetry, WriteOptions, encode_matrix, parse_matrix, read_header, read_matrix,
    read_vector,
};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The folder; prints a message if it is not set.
fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("LACUNA_MATRICES").map(PathBuf::from);
    if folder.is_none() {
        // Written directly to the stream, because `eprintln!` output is hidden when a test passes.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: no real matrices, LACUNA_MATRICES does not name their folder"
        );
    }
    folder
}

fn read<T: Scalar>(path: &Path) -> Csr<T> {
    read_matrix(path, &ReadOptions::default()).unwrap_or_else(|e| panic!("{e}"))
}

/// Name, rows, columns, entries (including mirrored ones), zero diagonal entries.
const KNOWN: [(&str, usize, usize, usize, usize); 18] = [
    ("bcsstk01", 48, 48, 400, 0),
    ("e05r0000", 236, 236, 5856, 74),
    ("nos1", 237, 237, 1017, 0),
    ("gr_30_30", 900, 900, 7744, 0),
    ("rmat_11_lap", 2048, 2048, 18_086, 39),
    ("zenios", 2873, 2873, 27_191, 2873),
    ("spe10_layer50_dirichlet", 13_200, 13_200, 65_440, 0),
    ("wathen100", 30_401, 30_401, 471_601, 0),
    ("G2_circuit", 150_102, 150_102, 726_674, 0),
    ("west0067", 67, 67, 294, 65),
    ("mcca", 180, 180, 2659, 0),
    ("ex40", 7740, 7740, 458_012, 1824),
    ("raefsky1", 3242, 3242, 294_276, 0),
    ("mhd1280b", 1280, 1280, 22_778, 0),
    ("qc324", 324, 324, 26_730, 0),
    ("conf5_0-4x4-10", 3072, 3072, 119_808, 3072),
    ("lp_e226", 223, 472, 2768, usize::MAX),
    ("Chem97Zt", 2541, 31_022, 62_044, usize::MAX),
];

#[test]
fn known_matrices_have_their_published_sizes() {
    let Some(folder) = folder() else { return };
    for (name, rows, cols, nnz, zero_diagonal) in KNOWN {
        let s = Structure::of(&read::<Complex64>(&folder.join(format!("{name}.mtx"))));
        assert_eq!((s.rows, s.cols, s.nnz), (rows, cols, nnz), "{name}");
        assert!(
            zero_diagonal == usize::MAX || s.zero_diagonal == zero_diagonal,
            "{name}: {}",
            s.zero_diagonal
        );
    }
    assert!(Structure::of(&read::<Complex64>(&folder.join("mhd1280b.mtx"))).hermitian);
    let s = Structure::of(&read::<Complex64>(&folder.join("qc324.mtx")));
    assert!(s.symmetric && !s.hermitian);
}

#[test]
fn every_matrix_reads_and_survives_writing() {
    let Some(folder) = folder() else { return };
    let mut names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
    names.retain(|path| path.extension().is_some_and(|e| e == "mtx"));
    names.sort();
    assert!(!names.is_empty(), "no matrices in {}", folder.display());
    for path in names {
        let header = read_header(&path).unwrap_or_else(|e| panic!("{e}"));
        match header.field {
            Field::Complex => check(&path, header.symmetry, &read::<Complex64>(&path)),
            _ => check(&path, header.symmetry, &read::<f64>(&path)),
        }
        if header.cols == 1 && header.field != Field::Complex {
            assert_eq!(read_vector::<f64>(&path).unwrap().len(), header.rows);
        }
    }
}

fn check<T: Scalar>(path: &Path, symmetry: Symmetry, a: &Csr<T>) {
    let name = path.display();
    let s = Structure::of(a);
    match symmetry {
        Symmetry::General => {}
        Symmetry::Symmetric => assert!(s.symmetric, "{name}"),
        Symmetry::Hermitian => assert!(s.hermitian, "{name}"),
        Symmetry::SkewSymmetric => assert!(s.skew_symmetric, "{name}"),
    }
    let mut text = Vec::new();
    encode_matrix(&mut text, a, &WriteOptions::default()).unwrap();
    assert_eq!(&parse_matrix::<T>("written", &text).unwrap(), a, "{name}");
    assert_eq!(&a.transpose().transpose(), a, "{name}");
}
