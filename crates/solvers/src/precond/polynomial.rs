//! A polynomial on top of any preconditioner.
use crate::named::Settings;
use crate::{Handles, Parts, Preconditioner, Setup};
use lacuna_engine::{Pass, Recorder, Result, Scalar, Vector};
use lacuna_formats::Csr;
use std::borrow::Cow;

/// `M = Σ (I − ω M₀ A)ʲ ω M₀` for `j = 0 … order`, with another preconditioner `M₀`: `order + 1` steps from
/// zero of Richardson iteration preconditioned by `M₀`.
///
/// * Needs: what `M₀` needs. Under a method for positive definite matrices an odd order keeps `M` definite
///   whenever the eigenvalues of `ω M₀ A` are below 2, an even order always.
/// * Cost of an application: `order` products with `A` and `order + 1` applications of `M₀`, fused with all
///   vector work. Storage: that of `M₀` and 3 vectors.
/// * Reference: Wang, Klie, Parashar and Sudan 2009, doi:10.1007/978-3-642-01973-9_99.
pub struct Polynomial<T: Scalar> {
    inner: Box<dyn Preconditioner<T>>,
    order: usize,
    omega: f64,
}

/// Number of work vectors, placed after those of the other preconditioner.
const SCRATCH: usize = 3;

impl<T: Scalar> Polynomial<T> {
    /// A polynomial of order `order` on top of a preconditioner, with damping `omega`.
    pub fn new(inner: Box<dyn Preconditioner<T>>, order: usize, omega: f64) -> Self {
        Polynomial { inner, order, omega }
    }

    /// The preconditioner with the polynomial that one of `keys` asks for, if any.
    pub(super) fn on(
        inner: Box<dyn Preconditioner<T>>,
        settings: &Settings<'_>,
        keys: &[&str],
    ) -> Result<Box<dyn Preconditioner<T>>> {
        let key = settings.one_of(keys)?;
        let order = settings.number(key, "a whole number from 0 to 16", |order| *order <= 16)?;
        // Of the preconditioners with a shorter key, which have no other omega.
        let omega = match keys.contains(&"order") {
            true => settings.number("omega", "a number above 0 and below 2", |w| *w > 0.0 && *w < 2.0)?,
            false => 1.0,
        };
        Ok(match order == 0 && omega == 1.0 {
            true => inner,
            false => Box::new(Polynomial::new(inner, order, omega)),
        })
    }
}

impl<T: Scalar> Preconditioner<T> for Polynomial<T> {
    fn name(&self) -> Cow<'static, str> {
        let name = self.inner.name();
        let joint = if name.contains(':') { ',' } else { ':' };
        let omega = if self.omega == 1.0 { String::new() } else { format!(",omega={}", self.omega) };
        format!("{name}{joint}polynomial={}{omega}", self.order).into()
    }
    fn set_up(&mut self, a: &Csr<T>, setup: &mut Setup<'_>) -> Result<Parts<T>> {
        let mut parts = self.inner.set_up(a, setup)?;
        for _ in 0..SCRATCH {
            parts = parts.scratch(a.rows());
        }
        Ok(parts.report("polynomial", format!("of order {}", self.order)))
    }
    fn is_narrow(&self) -> bool {
        self.inner.is_narrow()
    }
    fn outweighs_product(&self) -> bool {
        self.inner.outweighs_product()
    }
    fn apply(&self, k: &mut Recorder<'_, T>, on: &Handles<T>, r: Vector<T>, z: Vector<T>, then: Pass<T>) {
        let omega = self.omega;
        if self.order == 0 {
            let scaled = if omega == 1.0 { Pass::nothing() } else { Pass::new("damp").set(z, omega * z) };
            return self.inner.apply(k, on, r, z, scaled.then(then));
        }
        let [.., first, product, image] = *on.all_scratch() else { return };
        let damped = if omega == 1.0 { Pass::nothing() } else { Pass::new("damp").set(first, omega * first) };
        self.inner.apply(k, on, r, first, damped);
        let mut then = Some(then);
        for step in 1..=self.order {
            let x = if step == 1 { first } else { z };
            k.spmv_dot(&on.a(), x, product, Pass::nothing());
            let mut pass = Pass::new("next").set(z, first + x - omega * image);
            if step == self.order
                && let Some(then) = then.take()
            {
                pass = pass.then(then);
            }
            self.inner.apply(k, on, product, image, pass);
        }
    }
}
