//! What a byte of a matrix costs GPUs in each format.

/// What moving a byte of a matrix in each format costs relative to `csr`, where whole programs are one kernel: it lays out `csr`
/// in slices, and packed rows, packets and dense rows as it. Of matrices that take more bytes than the second-level `cache`, and of others, where
/// instructions count and not bytes. Fitted to the products of `lacuna bench papers` on an H200 by CUDA
/// (docs/results/h200-papers.md). Diagonals with many zeros are slow in solves of small systems, which keep entries in
/// registers: CG on elasticity3d:8 takes 7.8 us an iteration by diagonals, 5.2 by rows; on triangles (poisson-p1:255) 5.9 and 6.7.
pub fn costs(bytes: usize, cache: usize) -> &'static [(&'static str, f64)] {
    if bytes > cache { &FAR } else { &NEAR }
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
