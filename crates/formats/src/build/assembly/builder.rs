//! A system built coefficient by coefficient or row by row.
use super::Assembled;
use crate::storage::checks::check_sizes;
use lacuna_engine::{Error, Result, Scalar, next_serial};
use std::collections::BTreeMap;

/// A linear system `A x = b` under construction: coefficients and rows in any order, with some unknowns
/// fixed.
///
/// * [`Assembly::square`]: as many equations as unknowns. The equation of a fixed unknown is omitted.
/// * [`Assembly::least_squares`]: any number of equations, which [`Assembly::row`] appends.
///
/// Coefficients at the same place are summed in the order in which they are added, so the same sequence gives
/// the same bits. Threads fill their own [parts](Assembly::part), which the caller
/// [appends](Assembly::append) in a fixed order.
///
/// [`Assembly::assemble`] builds the matrix and the right-hand side. For new values, the same sequence is
/// added again after [`Assembly::begin`]; [`Assembled::update`] then takes one pass, without sorting.
///
/// ```
/// use lacuna_formats::Assembly;
///
/// // A chain of four springs: its ends are held at 0 and 1.
/// let mut chain = Assembly::square(5);
/// chain.fix(0, 0.0);
/// chain.fix(4, 1.0);
/// let springs = |chain: &mut Assembly<f64>, k: f64| (0..4).for_each(|i| chain.couple(i, i + 1, k));
/// springs(&mut chain, 1.0);
/// let mut system = chain.assemble()?;
/// assert_eq!((system.matrix().rows(), system.b()), (3, &[0.0, 0.0, 1.0][..]));
/// assert_eq!(system.full(&[0.25, 0.5, 0.75])?, [0.0, 0.25, 0.5, 0.75, 1.0]);
///
/// chain.begin();
/// springs(&mut chain, 3.0);
/// system.update(&chain)?;
/// assert_eq!((system.matrix().get(0, 0), system.b()[2]), (Some(6.0), 3.0));
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "an assembly does nothing until it is made a matrix"]
pub struct Assembly<T> {
    unknowns: usize,
    square: bool,
    /// Number of equations appended.
    rows: usize,
    pub(super) fixed: BTreeMap<u32, T>,
    /// Rows and columns of all coefficients; those past the length of `values` date from before
    /// [`Assembly::begin`].
    pub(super) places: Vec<(u32, u32)>,
    pub(super) values: Vec<T>,
    pub(super) b: Vec<(u32, T)>,
    /// Changes with the places and the set of fixed unknowns.
    pattern: u32,
    /// One more than the number of the last equation.
    equations: usize,
    /// The first equation and unknown that are out of range.
    outside: Option<(usize, usize)>,
}

impl<T: Scalar> Assembly<T> {
    /// An empty system with as many equations as unknowns.
    pub fn square(unknowns: usize) -> Self {
        Assembly {
            unknowns,
            square: true,
            rows: 0,
            fixed: BTreeMap::new(),
            places: Vec::new(),
            values: Vec::new(),
            b: Vec::new(),
            pattern: next_serial(),
            equations: 0,
            outside: None,
        }
    }

    /// An empty system with any number of equations: `min ‖b − A x‖`.
    pub fn least_squares(unknowns: usize) -> Self {
        Assembly { square: false, ..Self::square(unknowns) }
    }

    /// Number of unknowns, including fixed ones.
    pub fn unknowns(&self) -> usize {
        self.unknowns
    }
    /// Number of equations, including those of fixed unknowns.
    pub fn equations(&self) -> usize {
        if self.square { self.unknowns } else { self.equations }
    }
    /// Whether there are as many equations as unknowns.
    pub fn is_square(&self) -> bool {
        self.square
    }
    /// Number of coefficients added so far.
    pub fn len(&self) -> usize {
        self.values.len()
    }
    /// Whether no coefficient has been added.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Adds `value` to the coefficient of unknown `j` in equation `i`. An index out of range makes
    /// [`Assembly::assemble`] fail.
    #[inline]
    pub fn add(&mut self, i: usize, j: usize, value: T) {
        let most = if self.square { self.unknowns } else { u32::MAX as usize };
        let (Ok(row), Ok(column), true) = (u32::try_from(i), u32::try_from(j), i < most && j < self.unknowns)
        else {
            self.outside.get_or_insert((i, j));
            return;
        };
        self.equations = self.equations.max(i + 1);
        let k = self.values.len();
        self.values.push(value);
        if self.places.get(k) != Some(&(row, column)) {
            self.pattern = 0;
            self.places.truncate(k);
            self.places.push((row, column));
        }
    }

    /// Adds `value` to the right-hand side of equation `i`.
    pub fn add_b(&mut self, i: usize, value: T) {
        let most = if self.square { self.unknowns } else { u32::MAX as usize };
        match u32::try_from(i) {
            Ok(row) if i < most => {
                self.equations = self.equations.max(i + 1);
                self.b.push((row, value));
            }
            _ => {
                self.outside.get_or_insert((i, 0));
            }
        }
    }

    /// Couples two unknowns with weight `w`, symmetrically: adds `w (x_i − x_j)` to equation `i`,
    /// `w (x_j − x_i)` to equation `j`.
    pub fn couple(&mut self, i: usize, j: usize, w: T) {
        self.add(i, i, w);
        self.add(j, j, w);
        self.add(i, j, -w);
        self.add(j, i, -w);
    }

    /// Appends the equation `Σ value x_j = b` and returns its number. It follows all equations of a
    /// least-squares system, but only the previously appended ones of a square system.
    pub fn row(&mut self, coefficients: impl IntoIterator<Item = (usize, T)>, b: T) -> usize {
        let i = if self.square { self.rows } else { self.equations };
        self.rows += 1;
        coefficients.into_iter().for_each(|(j, value)| self.add(i, j, value));
        self.add_b(i, b);
        i
    }

    /// Fixes unknown `j` at `value`: its coefficients move to the right-hand side. May be called at any time,
    /// also to change the value.
    pub fn fix(&mut self, j: usize, value: T) {
        match u32::try_from(j) {
            Ok(column) if j < self.unknowns => {
                if self.fixed.insert(column, value).is_none() {
                    self.pattern = 0;
                }
            }
            _ => {
                self.outside.get_or_insert((0, j));
            }
        }
    }

    /// Frees a fixed unknown, so that it is solved for again.
    pub fn free(&mut self, j: usize) {
        if u32::try_from(j).is_ok_and(|j| self.fixed.remove(&j).is_some()) {
            self.pattern = 0;
        }
    }

    /// An empty assembly for the same unknowns, for another thread to fill. The equations of a least-squares
    /// part, and rows appended to a part of a square system, are numbered from 0.
    pub fn part(&self) -> Self {
        Assembly { square: self.square, ..Self::square(self.unknowns) }
    }

    /// Appends a part: its coefficients after the present ones, its rows after the present rows.
    ///
    /// # Errors
    /// [`Error::Shape`] for a part with a different number of unknowns, or of the other kind.
    pub fn append(&mut self, part: &Self) -> Result<()> {
        if (self.unknowns, self.square) != (part.unknowns, part.square) {
            return Err(Error::Shape {
                operation: "Assembly::append".into(),
                expected: format!("a part with {} unknowns, of the same kind", self.unknowns),
                got: (part.equations(), part.unknowns),
            });
        }
        let offset = match self.square {
            true if part.rows == 0 => 0, // equations have the numbers of their unknowns
            true => self.rows,
            false => self.equations,
        };
        for (&(i, j), &value) in part.places.iter().zip(&part.values) {
            self.add(i as usize + offset, j as usize, value);
        }
        part.b.iter().for_each(|&(i, value)| self.add_b(i as usize + offset, value));
        self.rows += part.rows;
        if !self.square {
            self.equations = self.equations.max(offset + part.equations);
        }
        self.outside = self.outside.or(part.outside);
        Ok(())
    }

    /// Discards all coefficients and the right-hand side; fixed unknowns stay.
    pub fn begin(&mut self) {
        self.values.clear();
        self.b.clear();
        (self.rows, self.equations, self.outside) = (0, 0, None);
    }

    /// The system without its fixed unknowns. Runs on the current rayon pool.
    ///
    /// # Errors
    /// [`Error::Entry`] for a coefficient out of range or a sum that is not finite, [`Error::Element`] for a
    /// right-hand side or a fixed unknown that is not finite; [`Error::Structure`] for too many coefficients for 32-bit indices,
    /// [`Error::OutOfMemory`].
    pub fn assemble(&mut self) -> Result<Assembled<T>> {
        self.settle();
        Assembled::new(self)
    }

    /// Assigns a number to a changed pattern.
    fn settle(&mut self) {
        if self.places.len() > self.values.len() {
            self.places.truncate(self.values.len());
            self.pattern = 0;
        }
        if self.pattern == 0 {
            self.pattern = next_serial();
        }
    }

    /// The number of the pattern, if the pattern is complete.
    pub(super) fn pattern(&self) -> Option<u32> {
        (self.places.len() == self.values.len() && self.pattern != 0).then_some(self.pattern)
    }

    pub(super) fn check(&self, operation: &str) -> Result<()> {
        check_sizes(operation, self.equations(), self.unknowns, self.len())?;
        if let Some((row, column)) = self.outside {
            let (equations, unknowns) = (self.equations(), self.unknowns);
            let message = format!("there are {equations} equations and {unknowns} unknowns");
            return Err(Error::Entry { operation: operation.into(), row, column, message });
        }
        match self.fixed.iter().find(|(_, value)| !value.finite()) {
            None => Ok(()),
            Some((&row, value)) => Err(Error::Element {
                operation: operation.into(),
                what: "the fixed unknowns".into(),
                row: row as usize,
                message: format!("{value} is not finite"),
            }),
        }
    }
}
