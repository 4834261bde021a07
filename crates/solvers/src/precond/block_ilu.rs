//! Incomplete factorisation inside blocks.
use super::adjoint::{self, ADJOINT, kept_adjoint};
use super::ilu0::in_order;
use super::triangles::{Factors, Solves, apply, apply_adjoint, name_with};
use crate::named::{OptionInfo, Settings};
use crate::{Blocks, Handles, Parts, PrecondInfo, Preconditioner, Setup};
use lacuna_engine::{Error, Pass, Recorder, Result, Scalar, Vector};
use lacuna_formats::algebra::build_rows;
use lacuna_formats::factor::{Pivots, ilu0};
use lacuna_formats::{Csr, Permutation, parts};
use std::borrow::Cow;

/// `M = (L U)⁻¹` with `L U ≈` the diagonal blocks of `A`; entries between blocks are left out. Blocks are
/// boxes of `size` cells of a grid with a stencil of 5 or 7 points, otherwise compact sets of `size` rows, or `size` rows that follow each
/// other (`blocks=consecutive`, as in the paper); factored without fill.
///
/// * Needs: as [`Ilu0`](super::Ilu0). `M` is Hermitian, up to rounding, if the matrix is.
/// * Cost of an application: two triangular solves with the entries inside blocks; blocks are independent: on a GPU a warp
///   solves one of up to 64 rows, in one launch for all of up to half a million rows; others have few levels. Storage: these entries, and a vector; twice the entries with the adjoint
///   (`adjoint=yes`). A polynomial on top (`order=1`, damped by `omega`) compensates for the entries left out: see [`Polynomial`](super::Polynomial).
/// * Set-up: all threads, but one for the partition of the graph. New values: the same cost again.
/// * Reference: Wang, Klie, Parashar and Sudan 2009, doi:10.1007/978-3-642-01973-9_99.
#[derive(Clone, Copy, Debug)]
pub struct BlockIlu {
    /// Rows of a block.
    pub size: usize,
    /// Which rows make a block.
    pub blocks: Blocks,
    /// How small pivots are handled.
    pub pivots: Pivots,
    /// Whether the adjoint is stored too.
    pub adjoint: bool,
}

impl Default for BlockIlu {
    fn default() -> Self {
        BlockIlu { size: 32, blocks: Blocks::Connected, pivots: Pivots::Shift, adjoint: false }
    }
}

/// The names of the ways to choose blocks.
const CHOICES: [(&str, Blocks); 2] = [("connected", Blocks::Connected), ("consecutive", Blocks::Consecutive)];

impl BlockIlu {
    pub(super) const INFO: PrecondInfo = PrecondInfo {
        name: "block-ilu",
        about: "incomplete LU inside blocks of coupled rows, and a polynomial on top",
        options: &[
            OptionInfo { key: "size", default: "32", about: "rows of a block, 2 to 65536" },
            OptionInfo { key: "blocks", default: "connected", about: "connected or consecutive rows" },
            OptionInfo { key: "order", default: "0", about: "the same as polynomial" },
            OptionInfo {
                key: "omega",
                default: "1",
                about: "damping of the polynomial, above 0 and below 2",
            },
            OptionInfo {
                key: "pivots",
                default: "shift",
                about: "shift or refuse: for pivots that are almost zero",
            },
            ADJOINT,
        ],
        needs_diagonal: false,
        needs_hermitian: false,
        needs_stencil: false,
    };

    pub(super) fn named(settings: &Settings<'_>) -> Result<Self> {
        let choices = [("shift", Pivots::Shift), ("refuse", Pivots::Refuse)];
        let expected = "a whole number from 2 to 65536";
        Ok(BlockIlu {
            size: settings.number("size", expected, |s| (2..=65536).contains(s))?,
            blocks: settings.choice("blocks", &CHOICES)?.unwrap_or(Blocks::Connected),
            pivots: settings.choice("pivots", &choices)?.unwrap_or(Pivots::Shift),
            adjoint: adjoint::named(settings)?,
        })
    }
}

impl<T: Scalar> Preconditioner<T> for BlockIlu {
    fn name(&self) -> Cow<'static, str> {
        let size = (self.size != 32).then(|| format!("size={}", self.size));
        let consecutive = (self.blocks == Blocks::Consecutive).then(|| "blocks=consecutive".into());
        let refuses = (self.pivots == Pivots::Refuse).then(|| "pivots=refuse".into());
        name_with(
            "block-ilu",
            size.into_iter().chain(consecutive).chain(refuses).chain(adjoint::said(self.adjoint)).collect(),
        )
    }
    fn set_up(&mut self, a: &Csr<T>, setup: &mut Setup<'_>) -> Result<Parts<T>> {
        let (order, starts) = match self.blocks {
            Blocks::Connected => parts(a, self.size),
            Blocks::Consecutive => {
                let starts = (0..a.rows()).step_by(self.size.max(1)).chain([a.rows()]);
                (
                    Permutation::new((0..a.rows() as u32).collect())?,
                    starts.map(|start| start as u32).collect(),
                )
            }
        };
        setup.check()?;
        let inside = inside_blocks(a, &order, &starts)?;
        let in_order = |error: Error| match in_order(error, &order) {
            Error::Entry { row, column, message, .. } => {
                Error::Entry { operation: "block-ilu".into(), row, column, message }
            }
            other => other,
        };
        let made = ilu0(&*inside.wide()?, self.pivots).map_err(in_order)?;
        let factor = Csr::<T>::rounded("block-ilu", &made.factor).map_err(in_order)?;
        setup.check()?;
        let ones = vec![T::one(); a.rows()];
        let factors = Factors {
            lower: &factor,
            lower_reciprocals: Some(&ones),
            upper: &factor,
            upper_reciprocals: None,
            names: Some(order.order()),
        };
        let left_out = 100.0 * (1.0 - inside.nnz() as f64 / a.nnz().max(1) as f64);
        let made_of = factors.parts(Solves::Levels, self.adjoint)?;
        let made_of = made_of.report("left out between blocks", format!("{left_out:.0} % of the entries"));
        Ok(match made.shift {
            0.0 => made_of,
            shift => made_of.report("shift", format!("{shift:.0e} of the diagonal: a pivot was almost zero")),
        })
    }
    fn apply(&self, k: &mut Recorder<'_, T>, on: &Handles<T>, r: Vector<T>, z: Vector<T>, then: Pass<T>) {
        apply(k, on, Solves::Levels, [r, z], then);
    }
    kept_adjoint!(|_, k, on, rz, then| apply_adjoint(k, on, Solves::Levels, rz, then));
}

/// The entries inside blocks of a permuted matrix.
fn inside_blocks<T: Scalar>(a: &Csr<T>, order: &Permutation, starts: &[u32]) -> Result<Csr<T>> {
    let place = order.inverse();
    let mut block_of = vec![0u32; a.rows()];
    for (block, ends) in starts.windows(2).enumerate() {
        block_of[ends[0] as usize..ends[1] as usize].fill(block as u32);
    }
    build_rows("block-ilu", a.rows(), a.cols(), a.row_shares(), |run, out| {
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        for new in run {
            columns.clear();
            values.clear();
            for (j, v) in a.row_entries(order.order()[new] as usize) {
                if block_of[place[j] as usize] == block_of[new] {
                    columns.push(place[j]);
                    values.push(v);
                }
            }
            out.row(&columns, &values);
        }
    })
}
