//! What a byte of a matrix costs GPUs in each format.

/// What moving a byte of a matrix in each format costs relative to `csr`, where whole programs are one kernel: it lays out `csr`
/// in slices, and packed rows, packets and dense rows as it. Of matrices that take more bytes than the second-level `cache`, and of others, where
/// instructions count and not bytes. Fitted to the products of `lacuna bench papers` on an H200 by CUDA
/// (docs/results/h200-papers.md). Diagonals with many zeros are slow in solves of small systems, which keep entries in
/// registers: CG on elasticity3d:8 takes 7.8 us an iteration by diagonals, 5.2 by rows; on triangles (poisson-p1:255) 5.9 and 6.7.
pub fn costs(bytes: usize, cache: usize) -> &'static [(&'static str, f64)] {
    if bytes > cache { &FAR } else { &NEAR }
}

/// Whether several columns at once pay, though operations are launched one by one for it: where one kernel for all columns, one after the
/// other, has to read the matrix from memory again. On an H200, microseconds for each of eight columns together and apart: `csr`
/// of elasticity3d:12 (3 MB) 5.5 and 2.2, of elasticity3d:24 (24 MB) 6.2 and 6.7, slices of them by OpenCL 13 and 3.5, 15.3 and 7.1.
/// Where one alone takes longer than that: `bcsr3` of elasticity3d:47 22 and 31, diagonals of poisson3d:48x48x48:27 (24 MB) 3.2
/// and 5.1, of 64x64x64 6.1 and 15.7.
pub fn columns_pay(kernel: &str, bytes: usize, cache: usize) -> bool {
    let kept = if kernel == "dia" { cache / 3 } else { cache / 2 };
    bytes > kept
}

const FAR: [(&str, f64); 11] = table([1.05, 1.1, 1.2]);
const NEAR: [(&str, f64); 11] = table([1.3, 2.0, 1.5]);

const fn table([dia, bcsr, hyb]: [f64; 3]) -> [(&'static str, f64); 11] {
    [
        ("csr", 1.0),
        ("dia", dia),
        ("sell", 1.2),
        ("ell", 1.2),
        ("bcsr", bcsr),
        ("hyb", hyb),
        ("coo", 1.0),
        ("stencil", 3.5),
        ("packed", 2.0),
        ("pkt", 2.0),
        ("dense", 1.25),
    ]
}
