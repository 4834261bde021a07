//! What a choice depends on: a matrix, and its properties as far as they were asked for.
use super::factor::{factor_of, lost, times};
use super::multilevel::{is_diffusion, is_elastic};
use super::plan::DIRECT;
use crate::{Factor, Multigrid, Preconditioner, preconditioner};
use lacuna_engine::{Result, Scalar};
use lacuna_formats::{Csr, Stencil, Structure};
use std::cell::OnceCell;
use std::sync::Arc;

/// A matrix in the order in which it is solved. Each property is computed when it is first asked for.
pub struct Facts<T: Scalar> {
    a: Arc<Csr<T>>,
    factor: Factor,
    lost: Option<String>,
    /// Whether the matrix has the factor that it is solved with.
    is_scaled: bool,
    on_host: bool,
    structure: OnceCell<Structure>,
    stencil: OnceCell<Option<Stencil<T>>>,
    diffusion: OnceCell<bool>,
    elastic: OnceCell<bool>,
    factors: OnceCell<Option<Counted<T>>>,
    /// Seconds that complete factors are expected to take, from the same matrix with its rows in another order.
    expected_factors: Option<f64>,
}

/// Complete factors whose cost is counted.
pub(super) struct Counted<T: Scalar> {
    /// The preconditioner, which keeps the order that was found.
    pub(super) made: Box<dyn Preconditioner<T>>,
    /// Seconds that they are expected to take.
    pub(super) seconds: f64,
}

impl<T: Scalar> Facts<T> {
    /// The facts about a matrix that is solved on the host, or on a device with memory of its own.
    pub fn of(a: Arc<Csr<T>>, on_host: bool) -> Self {
        Facts {
            a,
            factor: Factor::default(),
            lost: None,
            is_scaled: false,
            on_host,
            structure: OnceCell::new(),
            stencil: OnceCell::new(),
            diffusion: OnceCell::new(),
            elastic: OnceCell::new(),
            factors: OnceCell::new(),
            expected_factors: None,
        }
    }

    /// The facts about the same matrix with its rows in another order.
    pub(super) fn of_moved(a: Arc<Csr<T>>, given: &Self) -> Self {
        let counted = given.factors.get().and_then(Option::as_ref);
        Facts { expected_factors: counted.map(|counted| counted.seconds), ..Self::of(a, given.on_host) }
    }

    /// The facts about a matrix that has its factor.
    pub(super) fn of_scaled(a: Arc<Csr<T>>, on_host: bool) -> Self {
        Facts { is_scaled: true, ..Self::of(a, on_host) }
    }

    /// The matrix, times the factor once a method is chosen.
    pub fn matrix(&self) -> &Arc<Csr<T>> {
        &self.a
    }

    /// The factor by which the matrix was multiplied.
    pub fn factor(&self) -> Factor {
        self.factor
    }

    /// What is said of entries that the factor makes too small to keep their digits.
    pub fn lost(&self) -> Option<&String> {
        self.lost.as_ref()
    }

    /// Whether the matrix is solved on the host, where set-ups and iterations run on the same processor.
    pub fn on_host(&self) -> bool {
        self.on_host
    }

    /// Multiplies the matrix by a power of two that keeps squares of products in range, of the narrower type if some
    /// vectors are `narrow`, and by −1 if the method needs a `definite` matrix and the diagonal is negative.
    pub(super) fn scale(&mut self, definite: bool, narrow: bool) -> Result<()> {
        if self.is_scaled {
            return Ok(());
        }
        let factor = factor_of(&self.a, self.a.values(), definite, narrow);
        self.lost = lost::<T, T>(self.a.values(), factor.exponent);
        self.a = times(factor, self.a.clone())?;
        (self.factor, self.is_scaled) = (factor, true);
        if let Some(mut structure) = self.structure.take() {
            structure.norm_inf = structure.norm_inf.scale_by_power_of_two(factor.exponent);
            self.structure = if factor.negative { structure.negated() } else { structure }.into();
        }
        Ok(())
    }

    /// The structure of the matrix.
    pub fn structure(&self) -> &Structure {
        self.structure.get_or_init(|| Structure::of(&*self.a))
    }

    /// The matrix as a stencil that `multigrid` accepts, if it is one.
    pub fn stencil(&self) -> Option<&Stencil<T>> {
        self.stencil.get_or_init(|| Multigrid::stencil(&*self.a)).as_ref()
    }

    /// The points in x, y and z of its grid.
    pub fn grid(&self) -> Option<[usize; 3]> {
        self.stencil().map(Stencil::size)
    }

    /// The stencil, if it was asked for and found.
    pub(super) fn take_stencil(&mut self) -> Option<Stencil<T>> {
        self.stencil.take().flatten()
    }

    /// Seconds that complete factors are expected to take, if they were counted.
    pub(super) fn expected_factors(&self) -> Option<f64> {
        self.expected_factors
    }

    /// The complete factors of the matrix, counted, if it may have any, for those who want them within so many seconds.
    pub(super) fn factors(&self, within: f64) -> Option<&Counted<T>> {
        let counted = || {
            let mut made = preconditioner::<T>(DIRECT).ok()??;
            let seconds = made.expected_setup(&self.a, within).ok()??;
            Some(Counted { made, seconds })
        };
        self.factors.get_or_init(counted).as_ref()
    }

    /// The same, if they were asked for.
    pub(super) fn take_factors(&mut self) -> Option<Counted<T>> {
        self.factors.take().flatten()
    }

    /// Whether, in at least half of the rows, the couplings are negative and balance the diagonal: a discretised
    /// diffusion.
    pub fn is_diffusion(&self) -> bool {
        *self.diffusion.get_or_init(|| is_diffusion(&*self.a))
    }

    /// Whether, in at least half of the rows, the entries of each of several unknowns a node add up to nearly 0: the
    /// stiffness of an elastic body.
    pub fn is_elastic(&self) -> bool {
        *self.elastic.get_or_init(|| is_elastic(&*self.a, self.structure()))
    }

    /// `√(‖A‖₁ ‖A‖_∞)`, if the structure was asked for and the matrix mirrors itself: column sums then follow from row sums.
    pub(super) fn mirrored_norm(&self) -> Option<f64> {
        let mirrored = |s: &&Structure| s.hermitian || s.symmetric || s.skew_symmetric;
        self.structure.get().filter(mirrored).map(|s| s.norm_inf)
    }
}
