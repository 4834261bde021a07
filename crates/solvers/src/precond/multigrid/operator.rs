//! An operator on a grid whose coefficients depend on the position of a point along each axis: first,
//! interior, or last.
use super::smoother::Smoother;
use lacuna_engine::{Complex64, Double, Error, Result, Scalar};
use lacuna_formats::algebra::galerkin;
use lacuna_formats::{Interpolation, POSITIONS, Stencil, parallel};

/// The axes along which a grid is coarsened, as by [`Interpolation`].
pub(super) type Axes = [bool; 3];

/// Neighbours of a point, including itself, at most one step away along each axis. x is fastest.
const NEIGHBOURS: usize = 27;
/// The point itself.
const CENTRE: usize = 13;
/// Classes of points along an axis. An axis of fewer points has one class per point.
const CLASSES: usize = 3;
/// Minimum points of whole lines per thread.
const LINES: usize = 1 << 14;
/// Angles along each axis at which the symbol is evaluated.
const ANGLES: usize = 9;

/// Coefficients of the neighbours of a point, by its class along each axis. Galerkin coarse operators have
/// this form too: a coarse point that is neither first nor last does not see the ends of the finer grid.
pub(super) struct Operator<T> {
    pub(super) size: [usize; 3],
    /// Which neighbours are present.
    pattern: [bool; NEIGHBOURS],
    /// For each class, x fastest, the coefficients of all neighbours; 0 for those off the grid.
    coefficients: Vec<[T; NEIGHBOURS]>,
    /// Whether coefficients may differ between classes, other than by 0.
    has_positions: bool,
}

/// The index of a point of a grid, x fastest.
fn number(point: [usize; 3], size: [usize; 3]) -> usize {
    point[0] + size[0] * (point[1] + size[1] * point[2])
}

/// The point of an index.
fn point(number: usize, size: [usize; 3]) -> [usize; 3] {
    [number % size[0], number / size[0] % size[1], number / size[0] / size[1]]
}

/// The numbers of classes along each axis of a grid.
fn classes(size: [usize; 3]) -> [usize; 3] {
    size.map(|points| points.min(CLASSES))
}

/// The class of a point.
fn class(at: [usize; 3], size: [usize; 3]) -> usize {
    let along = |k: usize| match at[k] {
        at if size[k] <= CLASSES => at,
        0 => 0,
        at if at + 1 == size[k] => 2,
        _ => 1,
    };
    number([along(0), along(1), along(2)], classes(size))
}

/// The neighbour of a point, unless it is off the grid.
fn neighbour(at: [usize; 3], k: usize, size: [usize; 3]) -> Option<[usize; 3]> {
    let mut to = point(k, [3; 3]);
    for axis in 0..3 {
        to[axis] = (at[axis] + to[axis]).checked_sub(1).filter(|to| *to < size[axis])?;
    }
    Some(to)
}

impl<T: Double> Operator<T> {
    /// The operator of a stencil.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for neighbours more than one step away.
    pub(super) fn of<U: Scalar<Wide = T>>(operation: &str, stencil: &Stencil<U>) -> Result<Self> {
        let mut all = [T::zero(); NEIGHBOURS];
        let mut pattern = [false; NEIGHBOURS];
        for (steps, c) in stencil.neighbours().iter().zip(stencil.coefficients()) {
            let steps = [steps[0], steps[1], steps[2]];
            if steps.iter().any(|step| step.abs() > 1) {
                let message =
                    format!("a neighbour is {steps:?} steps away; expected one along each axis at the most");
                return Err(Error::Unsupported { operation: operation.into(), message });
            }
            let k = number(steps.map(|step| (step + 1) as usize), [3; 3]);
            (all[k], pattern[k]) = (c.wide(), true);
        }
        let size = stencil.size();
        let of_class = |c: usize| {
            let at = point(c, classes(size));
            std::array::from_fn(|k| neighbour(at, k, classes(size)).map_or(T::zero(), |_| all[k]))
        };
        let count = classes(size).iter().product();
        Ok(Operator { size, pattern, coefficients: (0..count).map(of_class).collect(), has_positions: false })
    }

    /// The coefficients at the middle of the grid.
    pub(super) fn inner(&self) -> &[T; NEIGHBOURS] {
        &self.coefficients[class(self.size.map(|points| points / 2), self.size)]
    }

    /// The diagonal entry at the middle of the grid.
    pub(super) fn centre(&self) -> T {
        self.inner()[CENTRE]
    }

    /// The number of neighbours of a point, including itself.
    pub(super) fn neighbours(&self) -> usize {
        self.pattern.iter().filter(|is| **is).count()
    }

    /// Whether opposite neighbours have conjugate coefficients.
    pub(super) fn is_hermitian(&self) -> bool {
        let all = self.inner();
        (0..NEIGHBOURS).all(|k| all[k] == all[NEIGHBOURS - 1 - k].conj())
    }

    /// The strength of coupling along each axis: `−½ Σ c s²` over the steps `s`. For a second difference this
    /// is its coefficient.
    pub(super) fn couplings(&self) -> [f64; 3] {
        let mut sums = [0.0; 3];
        for (k, c) in self.inner().iter().enumerate() {
            let steps = point(k, [3; 3]);
            sums.iter_mut()
                .zip(steps)
                .filter(|(_, step)| *step != 1)
                .for_each(|(sum, _)| *sum -= 0.5 * c.re());
        }
        sums
    }

    /// The weights of SPAI(0), `conj(a_ii) / Σ_j |a_ij|²`.
    pub(super) fn spai0(&self) -> Vec<T> {
        self.by_row(|row| {
            let squares = row.iter().map(|c| c.re() * c.re() + c.im() * c.im()).sum();
            row[CENTRE].conj().quotient(T::from_real(squares))
        })
    }

    /// The smoother by Chebyshev's polynomial.
    pub(super) fn chebyshev(&self) -> Smoother<T> {
        let (radius, norm) = (self.radius(), self.norm());
        match self.has_positions {
            true => Smoother::chebyshev(&self.by_row(|row| row[CENTRE]), radius, norm),
            false => Smoother::chebyshev_of(self.centre(), radius, norm),
        }
    }

    /// `‖D⁻¹A‖∞`
    pub(super) fn norm(&self) -> f64 {
        let norm =
            |row: &[T; NEIGHBOURS]| row.iter().map(|c| c.modulus()).sum::<f64>() / row[CENTRE].modulus();
        self.coefficients.iter().map(norm).fold(0.0, f64::max)
    }

    /// The largest modulus of the symbol `Σ c e^(iθs) / a_ii`, which bounds the spectral radius of `D⁻¹A` for
    /// a Hermitian stencil. It is sampled at some angles, so the result may be a little low.
    pub(super) fn radius(&self) -> f64 {
        let all = self.inner().map(|c| Complex64::new(c.re(), c.im()));
        let wave = |angle: usize| Complex64::cis(std::f64::consts::PI * angle as f64 / (ANGLES - 1) as f64);
        // Angles along the first axis cover half a period, those along the others a full one; an axis of one point
        // has none.
        let span = |axis: usize, angles: usize| (0..if self.size[axis] == 1 { 1 } else { angles }).map(wave);
        let mut most = 0.0f64;
        for z in span(2, 2 * ANGLES - 2) {
            let plane: [Complex64; 9] =
                std::array::from_fn(|k| all[k] * z.conj() + all[9 + k] + all[18 + k] * z);
            for y in span(1, 2 * ANGLES - 2) {
                let line: [Complex64; 3] =
                    std::array::from_fn(|k| plane[k] * y.conj() + plane[3 + k] + plane[6 + k] * y);
                for x in span(0, ANGLES) {
                    most = most.max((line[0] * x.conj() + line[1] + line[2] * x).re.abs());
                }
            }
        }
        most / self.centre().modulus()
    }

    /// Evaluates `of` on the coefficients of each row.
    fn by_row(&self, of: impl Fn(&[T; NEIGHBOURS]) -> T) -> Vec<T> {
        let by_class: Vec<T> = self.coefficients.iter().map(of).collect();
        let [nx, ny, nz] = self.size;
        // For each class along y and z, a line.
        let [cx, cy, cz] = classes(self.size);
        let line = |c: usize| (0..nx).map(move |x| (c, x));
        let of_point = |(c, x): (usize, usize)| by_class[c * cx + class([x, 0, 0], [nx, 1, 1])];
        let lines: Vec<Vec<T>> = (0..cy * cz).map(|c| line(c).map(of_point).collect()).collect();
        let mut values = vec![T::zero(); nx * ny * nz];
        let run = LINES.div_ceil(nx);
        parallel::for_each(values.chunks_mut(nx * run).enumerate(), |(chunk, values)| {
            for (own, number) in values.chunks_mut(nx).zip(run * chunk..) {
                own.copy_from_slice(&lines[class([0, number % ny, number / ny], [1, ny, nz])]);
            }
        });
        values
    }

    /// As a matrix, with coefficients rounded to a type.
    pub(super) fn stencil<U: Scalar<Wide = T>>(&self) -> Result<Stencil<U>> {
        let all: Vec<usize> = (0..NEIGHBOURS).filter(|k| self.pattern[*k]).collect();
        let steps: Vec<[i32; 3]> =
            all.iter().map(|k| point(*k, [3; 3]).map(|step| step as i32 - 1)).collect();
        // A point at each position, if there is one.
        let at = |p: usize| {
            let along = point(p, [3; 3]);
            [0, 1, 2].map(|axis| [0, self.size[axis] / 2, self.size[axis] - 1][along[axis]])
        };
        let of = |p: usize| {
            let row = &self.coefficients[class(at(p), self.size)];
            all.iter().map(|k| row[*k].converted()).collect()
        };
        let coefficients: Vec<Vec<U>> = (0..POSITIONS).map(of).collect();
        Stencil::by_position(self.size, &steps, &coefficients)
    }

    /// `R A P` on the grid coarsened along `axes`, computed on a small grid with the same boundaries.
    pub(super) fn coarsened(&self, axes: Axes) -> Result<Self> {
        let small = [0, 1, 2].map(|k| match self.size[k] {
            points if !axes[k] => points.min(CLASSES),
            points if points < 2 * CLASSES => points,
            points => 2 * CLASSES + points % 2,
        });
        let own = Operator { size: small, coefficients: self.coefficients.clone(), ..*self };
        let transfers = [Interpolation::restriction(small, axes)?, Interpolation::prolongation(small, axes)?];
        let [r, p] = [transfers[0].to_csr()?, transfers[1].to_csr()?];
        let c = galerkin(&r, &own.stencil::<T>()?.to_csr()?, &p)?;
        let of_small = transfers[0].grids().to();
        let size = [0, 1, 2].map(|k| if axes[k] { self.size[k] / 2 } else { self.size[k] });
        let of_class = |at: usize| {
            let at_point = point(at, of_small);
            let entry = |to: [usize; 3]| c.get(at, number(to, of_small)).unwrap_or(T::zero());
            std::array::from_fn(|k| neighbour(at_point, k, of_small).map_or(T::zero(), entry))
        };
        // Interpolation reaches one step along coarsened axes, and none along the others.
        let stays = |k: usize, from: usize| {
            let [to, from] = [k, from].map(|k| point(k, [3; 3]));
            (0..3).all(|axis| axes[axis] || to[axis] == from[axis])
        };
        let reached = |k: usize| (0..NEIGHBOURS).any(|from| self.pattern[from] && stays(k, from));
        let pattern = std::array::from_fn(reached);
        Ok(Operator {
            size,
            pattern,
            coefficients: (0..c.rows()).map(of_class).collect(),
            has_positions: true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Operator;
    use lacuna_formats::algebra::galerkin;
    use lacuna_formats::{Csr, Interpolation, Stencil};
    use lacuna_io::Spec;

    fn operator(spec: &str) -> (Csr<f64>, Operator<f64>) {
        let a = Spec::parse(spec).unwrap().build::<f64>().unwrap();
        let stencil = Stencil::from_csr(&a).unwrap();
        (a, Operator::of("test", &stencil).unwrap())
    }

    #[test]
    fn coarse_operators_are_those_of_the_whole_grid() {
        for (spec, axes) in [
            ("gen:poisson3d:13x10x9", [true; 3]),
            ("gen:poisson3d:12x9x17:27", [true, false, true]),
            ("gen:poisson2d:25x14:9", [true, true, false]),
            ("gen:poisson1d:19", [true, false, false]),
        ] {
            let (mut a, mut own) = operator(spec);
            assert_eq!(own.stencil::<f64>().unwrap().to_csr().unwrap(), a);
            for _ in 0..3 {
                let size = own.size;
                if (0..3).any(|k| axes[k] && size[k] < 2) {
                    break;
                }
                let r = Interpolation::restriction(size, axes).unwrap().to_csr().unwrap();
                let p = Interpolation::prolongation(size, axes).unwrap().to_csr().unwrap();
                a = galerkin(&r, &a, &p).unwrap();
                own = own.coarsened(axes).unwrap();
                let made = own.stencil::<f64>().unwrap().to_csr().unwrap();
                for (i, j, v) in a.entries() {
                    let got = made.get(i, j).unwrap_or(0.0);
                    assert!((got - v).abs() <= 1e-13, "{spec} {size:?} {i} {j}: {got} {v}");
                }
                for (i, j, v) in made.entries() {
                    assert!(
                        v == 0.0 || a.get(i, j).is_some_and(|w| (v - w).abs() <= 1e-13),
                        "{spec} {i} {j}: {v}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_symbol_bounds_the_spectrum() {
        let (_, seven) = operator("gen:poisson3d:9x8x7");
        assert!((seven.radius() - 2.0).abs() < 1e-12 && (seven.norm() - 2.0).abs() < 1e-12);
        let (_, all) = operator("gen:poisson3d:9x8x7:27");
        // The maximum is at angle π along one axis, two, or all three.
        assert!((all.radius() - 36.0 / 26.0).abs() < 1e-12, "{}", all.radius());
    }
}
