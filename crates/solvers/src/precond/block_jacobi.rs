//! Inverted blocks on the diagonal.
use super::adjoint::{self, ADJOINT, kept_adjoint};
use super::triangles::name_with;
use crate::named::{OptionInfo, Settings};
use crate::{Handles, Parts, PrecondInfo, Preconditioner, Setup};
use lacuna_engine::{Double, Error, Pass, Recorder, Result, Scalar, Vector};
use lacuna_formats::algebra::build_rows;
use lacuna_formats::{BLOCK_SIZES, Csr, Structure, compact_parts, convert};
use std::borrow::Cow;
use std::sync::Arc;

const OPERATION: &str = "preconditioner `block-jacobi`";
/// The largest block of consecutive rows where nothing else is asked for; larger blocks are connected parts.
const CONSECUTIVE: usize = 8;
/// Rows of a block where the matrix has no blocks of its own.
const USUAL: usize = 8;
/// Blocks that a thread takes at least.
const GRAIN: usize = 256;

/// Which rows make a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// Rows that follow each other.
    Consecutive,
    /// Rows that are coupled: connected parts of the graph of the matrix.
    Connected,
}

/// `M` = the inverses of square blocks on the diagonal.
///
/// * Needs: blocks that are not singular. `M` is Hermitian positive definite where the matrix is.
/// * Cost of an application: one product with a matrix of `size` entries a row. Storage: that matrix, as blocks where the
///   size is 2 to 8 and divides the rows; two such matrices with the adjoint (`adjoint=yes`).
/// * Without a size, the blocks are those that the entries of the matrix lie in (2 to 8 unknowns a node); where there are
///   none, connected parts of 8 rows.
/// * Set-up: on all threads, with the same bits on any number of them.
/// * Reference: Saad 2003, Iterative Methods for Sparse Linear Systems, section 12.2.1, doi:10.1137/1.9780898718003.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockJacobi {
    /// Rows of a block, those that the matrix suggests where not given.
    pub size: Option<usize>,
    /// Which rows make a block; consecutive ones up to 8 rows where not given.
    pub blocks: Option<Blocks>,
    /// Whether the adjoint is stored too.
    pub adjoint: bool,
}

impl BlockJacobi {
    pub(super) const INFO: PrecondInfo = PrecondInfo {
        name: "block-jacobi",
        about: "inverted blocks on the diagonal; for several unknowns a node",
        options: &[
            OptionInfo { key: "size", default: "auto", about: "rows of a block, 1 to 64" },
            OptionInfo {
                key: "blocks",
                default: "auto",
                about: "consecutive or connected rows; auto: connected above 8",
            },
            ADJOINT,
        ],
        needs_diagonal: false,
        needs_hermitian: false,
        needs_stencil: false,
    };

    pub(super) fn named(settings: &Settings<'_>) -> Result<Self> {
        let size = match settings.given("size") {
            None | Some("auto") => None,
            Some(_) => {
                let expected = "`auto` or a whole number from 1 to 64";
                Some(settings.number("size", expected, |s| (1..=64).contains(s))?)
            }
        };
        let choices = [
            ("auto", None),
            ("consecutive", Some(Blocks::Consecutive)),
            ("connected", Some(Blocks::Connected)),
        ];
        let blocks = settings.choice("blocks", &choices)?.flatten();
        Ok(BlockJacobi { size, blocks, adjoint: adjoint::named(settings)? })
    }

    /// Rows of a block and which these are, for a matrix.
    fn blocks_of<T: Scalar>(&self, a: &Csr<T>) -> (usize, Blocks) {
        let natural = || Structure::of(a).block_size();
        let (size, usual) = match self.size {
            Some(size) if size <= CONSECUTIVE => (size, Blocks::Consecutive),
            Some(size) => (size, Blocks::Connected),
            None => natural().map_or((USUAL, Blocks::Connected), |size| (size, Blocks::Consecutive)),
        };
        (size, self.blocks.unwrap_or(usual))
    }
}

impl<T: Scalar> Preconditioner<T> for BlockJacobi {
    fn name(&self) -> Cow<'static, str> {
        let size = self.size.map(|size| format!("size={size}"));
        name_with("block-jacobi", size.into_iter().chain(adjoint::said(self.adjoint)).collect())
    }
    fn set_up(&mut self, a: &Csr<T>, setup: &mut Setup<'_>) -> Result<Parts<T>> {
        let (size, blocks) = self.blocks_of(a);
        let order: Vec<u32> = match blocks {
            Blocks::Consecutive => (0..a.rows() as u32).collect(),
            Blocks::Connected => compact_parts(a, size).order().to_vec(),
        };
        let inverse = inverted(&*a.wide()?, order, size, setup)?;
        let inverse = Arc::new(Csr::<T>::rounded_from(OPERATION, inverse)?);
        let stored = blocks == Blocks::Consecutive && BLOCK_SIZES.contains(&size);
        let format =
            if stored && a.rows().is_multiple_of(size) { format!("bcsr{size}") } else { "csr".into() };
        let which = match blocks {
            Blocks::Consecutive => "consecutive",
            Blocks::Connected => "connected",
        };
        let mut parts = Parts::new().shared_matrix(convert(&inverse, &format)?);
        if self.adjoint {
            parts = parts.shared_matrix(convert(&Arc::new(inverse.adjoint()), &format)?);
        }
        Ok(parts.report("blocks", format!("of {size} {which} rows, inverted, as {format}")))
    }
    fn apply(&self, k: &mut Recorder<'_, T>, on: &Handles<T>, r: Vector<T>, z: Vector<T>, then: Pass<T>) {
        let [inverse] = on.matrices();
        k.spmv_dot(&inverse, r, z, then);
    }
    kept_adjoint!(|_, k, on, [r, z], then| {
        let [_, adjoint] = on.matrices();
        k.spmv_dot(&adjoint, r, z, then);
    });
}

/// The block diagonal matrix of the inverses, where each `size` rows of the order make a block.
fn inverted<T: Double>(
    a: &Csr<T>,
    mut order: Vec<u32>,
    size: usize,
    setup: &mut Setup<'_>,
) -> Result<Csr<T>> {
    let n = a.rows();
    order.chunks_mut(size).for_each(<[u32]>::sort_unstable);
    // Where each row is in the order.
    let mut place = vec![0u32; n];
    order.iter().enumerate().for_each(|(at, &row)| place[row as usize] = at as u32);
    let entries = n.div_ceil(size.max(1)) * size * size;
    setup.check_memory(OPERATION, (entries * size_of::<T>()) as u64)?;
    let mut inverses = vec![T::zero(); entries];
    let bad = |(block, (inverse, rows)): (usize, (&mut [T], &[u32]))| {
        let m = rows.len();
        let inside = block * size..block * size + m;
        for (r, &row) in rows.iter().enumerate() {
            for (j, v) in a.row_entries(row as usize) {
                let at = place[j] as usize;
                if inside.contains(&at) {
                    inverse[r * m + at - inside.start] = v;
                }
            }
        }
        let hermitian = (0..m).all(|r| (0..=r).all(|c| inverse[r * m + c] == inverse[c * m + r].conj()));
        if !invert(&mut inverse[..m * m], m) {
            return Some(block);
        }
        if hermitian {
            for r in 0..m {
                for c in 0..=r {
                    let mean = T::from_real(0.5) * (inverse[r * m + c] + inverse[c * m + r].conj());
                    (inverse[r * m + c], inverse[c * m + r]) = (mean, mean.conj());
                }
            }
        }
        None
    };
    let parts = inverses.chunks_mut(GRAIN * size * size).zip(order.chunks(GRAIN * size)).enumerate();
    let first_bad = setup.map(
        parts,
        || (),
        |(), (part, (inverses, order))| {
            (part * GRAIN..).zip(inverses.chunks_mut(size * size).zip(order.chunks(size))).find_map(bad)
        },
    )?;
    if let Some(block) = first_bad.into_iter().flatten().next() {
        let rows = &order[block * size..n.min((block + 1) * size)];
        let (row, last) = (rows[0] as usize, rows[rows.len() - 1]);
        let message = format!("the block of {} rows from {row} to {last} is singular", rows.len());
        return Err(Error::Entry { operation: OPERATION.into(), row, column: row, message });
    }
    build_rows(OPERATION, n, n, a.row_shares(), |run, out| {
        out.reserve(run.len() * size);
        for row in run {
            let at = place[row] as usize;
            let block = at / size;
            let rows = &order[block * size..n.min((block + 1) * size)];
            let (m, r) = (rows.len(), at - block * size);
            let first = block * size * size + r * m;
            out.row(rows, &inverses[first..first + m]);
        }
    })
}

/// Inverts a dense matrix by Gauss and Jordan's elimination with partial pivoting; whether it could.
fn invert<T: Double>(m: &mut [T], n: usize) -> bool {
    let mut swapped = Vec::with_capacity(n);
    for k in 0..n {
        let pivot = (k..n).fold(
            k,
            |best, i| {
                if m[i * n + k].modulus() > m[best * n + k].modulus() { i } else { best }
            },
        );
        swapped.push(pivot);
        if pivot != k {
            (0..n).for_each(|j| m.swap(k * n + j, pivot * n + j));
        }
        let inverse = T::one().quotient(m[k * n + k]);
        if m[k * n + k] == T::zero() || !inverse.finite() {
            return false;
        }
        m[k * n + k] = T::one();
        (0..n).for_each(|j| m[k * n + j] *= inverse);
        for i in (0..n).filter(|&i| i != k) {
            let factor = std::mem::replace(&mut m[i * n + k], T::zero());
            if factor != T::zero() {
                (0..n).for_each(|j| {
                    let above = m[k * n + j];
                    m[i * n + j] -= factor * above;
                });
            }
        }
    }
    for (k, pivot) in swapped.into_iter().enumerate().rev() {
        if pivot != k {
            (0..n).for_each(|i| m.swap(i * n + k, i * n + pivot));
        }
    }
    m.iter().all(|v| v.finite())
}

#[cfg(test)]
mod tests {
    use super::invert;
    use lacuna_engine::Complex64;

    #[test]
    fn small_matrices_are_inverted_with_pivoting() {
        let mut m = vec![0.0, 2.0, 1.0, 3.0, 0.0, 1.0, 1.0, 1.0, 0.0];
        let a = m.clone();
        assert!(invert(&mut m, 3));
        for i in 0..3 {
            for j in 0..3 {
                let product: f64 = (0..3).map(|k| a[i * 3 + k] * m[k * 3 + j]).sum();
                assert!((product - if i == j { 1.0 } else { 0.0 }).abs() < 1e-14, "{i} {j} {product}");
            }
        }
        assert!(!invert(&mut [1.0, 2.0, 2.0, 4.0], 2));
        let mut turned = [
            Complex64::new(0.0, 0.0),
            Complex64::new(0.0, 1.0),
            Complex64::new(2.0, 0.0),
            Complex64::new(0.0, 0.0),
        ];
        assert!(invert(&mut turned, 2));
        assert_eq!((turned[1], turned[2]), (Complex64::new(0.5, 0.0), Complex64::new(0.0, -1.0)));
    }
}
