//! The singular value decomposition of small dense matrices.
use crate::small::{Small, dot, length};
use lacuna_engine::{Double, Error, Result, Scalar};

/// Sweeps over all pairs of columns, of which six to ten are usual.
const MOST_SWEEPS: usize = 40;

/// `A = U diag(s) Vᴴ`
#[derive(Clone, Debug)]
pub struct SmallSvd<W> {
    /// The left vectors, as many as `A` has columns.
    pub left: Small<W>,
    /// The singular values, from the largest on; 0 below the rounding of the largest.
    pub values: Vec<f64>,
    /// The right vectors.
    pub right: Small<W>,
}

impl<W: Double> Small<W> {
    /// The singular value decomposition of a matrix with at least as many rows as columns, by one-sided Jacobi rotations.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a matrix that is not finite, or has fewer rows than columns.
    ///
    /// Reference: Hestenes 1958, doi:10.1137/0106005; Demmel and Veselić 1992, doi:10.1137/0613074.
    pub fn svd(mut self) -> Result<SmallSvd<W>> {
        let (rows, n) = self.shape();
        let refused = |message: &str| {
            Err(Error::Unsupported { operation: "small singular values".into(), message: message.into() })
        };
        if rows < n {
            return refused("it has fewer rows than columns: take its adjoint");
        }
        if !self.values().iter().all(|v| v.finite()) {
            return refused("it has entries that are not finite");
        }
        let exponent = self.scale_to_one();
        let mut right = Small::identity(n);
        let largest = (0..n).map(|j| length(self.column(j))).fold(0.0, f64::max);
        let negligible = (f64::EPSILON * largest).powi(2);
        for _ in 0..MOST_SWEEPS {
            let mut turned = false;
            for q in 1..n {
                for p in 0..q {
                    turned |= self.turn(&mut right, [p, q], negligible);
                }
            }
            if !turned {
                break;
            }
        }
        let lengths: Vec<f64> = (0..n).map(|j| length(self.column(j))).collect();
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|i, j| lengths[*j].total_cmp(&lengths[*i]));
        let rank = order.iter().filter(|j| lengths[**j] * lengths[**j] > negligible).count();
        let known = self.columns(order[..rank].iter().copied());
        let known = Small::of(rows, rank, |i, j| known.at(i, j).quotient(W::from_real(lengths[order[j]])));
        // Any vectors do beside those of the values that are not 0.
        let left = match n - rank {
            0 => known,
            missing => {
                let others = Small::identity(rows).orthonormal_beside(&known, 0.5 / (rows as f64).sqrt());
                known.beside(others.columns(0..missing))
            }
        };
        let value = |(k, j): (usize, &usize)| {
            if k < rank { lengths[*j].scale_by_power_of_two(exponent) } else { 0.0 }
        };
        let values = order.iter().enumerate().map(value).collect();
        Ok(SmallSvd { left, values, right: right.columns(order) })
    }

    /// Makes two columns orthogonal; whether they were not.
    fn turn(&mut self, right: &mut Self, [p, q]: [usize; 2], negligible: f64) -> bool {
        let square = |v: &[W]| v.iter().map(|v| v.re() * v.re() + v.im() * v.im()).sum::<f64>();
        let (a, b) = (square(self.column(p)), square(self.column(q)));
        let product = dot(self.column(p), self.column(q));
        let size = length(&[product]);
        if a.min(b) <= negligible || size <= f64::EPSILON * (a * b).sqrt() {
            return false;
        }
        let zeta = (b - a) / (2.0 * size);
        let tangent = 1f64.copysign(zeta) / (zeta.abs() + (1.0 + zeta * zeta).sqrt());
        let c = 1.0 / (1.0 + tangent * tangent).sqrt();
        let phase = product.quotient(W::from_real(size)).conj();
        for of in [self, right] {
            of.rotate([p, q], phase, [c, c * tangent].map(W::from_real));
        }
        true
    }

    /// `[p q] ← [c p − s f q, s p + c f q]` for a phase `f`.
    fn rotate(&mut self, [p, q]: [usize; 2], phase: W, [c, s]: [W; 2]) {
        for i in 0..self.shape().0 {
            let (one, two) = (self.at(i, p), self.at(i, q) * phase);
            self.set(i, p, c * one - s * two);
            self.set(i, q, s * one + c * two);
        }
    }
}
