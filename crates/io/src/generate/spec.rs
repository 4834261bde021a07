//! The names of the generators and their arguments.
use super::alike::Shape;
use super::arguments::Arguments;
use super::energies::{Energy, wathen, wathen_rows};
use super::{banded, elements, grid, network, reservoir, surface};
use lacuna_engine::text::{nearest, shown_name, shown_word};
use lacuna_engine::{Error, Result, Scalar, compiled_here, memory};
use lacuna_formats::Csr;
use std::fmt;
use std::str::FromStr;

/// A generator as shown by `--help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generator {
    /// Its name, after `gen:`.
    pub name: &'static str,
    /// Its arguments, after another colon; optional ones in brackets.
    pub arguments: &'static str,
    /// A description.
    pub description: &'static str,
    /// An example.
    pub example: &'static str,
}

macro_rules! generators {
    ($($name:literal $arguments:literal $example:literal $description:literal;)*) => {
        const GENERATORS: &[Generator] = &[$(Generator {
            name: $name,
            arguments: $arguments,
            description: $description,
            example: concat!("gen:", $name, ":", $example),
        }),*];
    };
}
generators! {
    "poisson1d" "N" "1000" "Poisson on a line, 3-point; symmetric positive definite";
    "poisson2d" "NXxNY[:9]" "512x512" "Poisson on a rectangle, 5- or 9-point; symmetric positive definite";
    "poisson3d" "NXxNYxNZ[:27]" "100x100x100" "Poisson in a box, 7- or 27-point; symmetric positive definite";
    "poisson-p1" "M" "255" "linear triangles on a perturbed mesh of the unit square, M² unknowns; symmetric positive definite";
    "elasticity3d" "M" "16" "elasticity of a cube, linear tetrahedra, 3M(M+1)² unknowns in 3x3 blocks; symmetric positive definite";
    "convection" "NXxNY[xNZ][:PECLET]" "256x256:100" "convection-diffusion, recirculating wind, upwind (Péclet number 100 unless given); nonsymmetric";
    "helmholtz" "NXxNY[:K]" "256x256:40" "damped waves of wave number K (ten points a wave unless given), absorbing sides; complex symmetric";
    "elasticity2d" "M" "100" "elasticity of a plate, linear triangles, 2M² unknowns in 2x2 blocks; symmetric positive definite";
    "cross-diffusion" "M:SPECIES" "100:4" "coupled diffusion on the mesh of poisson-p1, SPECIES unknowns a node in dense blocks; symmetric positive definite";
    "lscm" "M|FILE.obj" "100" "least-squares conformal map of a surface, hills of MxM cells or a mesh in a file, 2 unknowns a node; symmetric positive definite";
    "smooth" "M|FILE.obj" "100" "smoothing of the same surfaces, 3 unknowns a node; symmetric positive definite";
    "spe10-like" "SEED[:NXxNYxNZ]" "1" "reservoir of 60x220x85 cells, log-normal permeability over five decades; symmetric positive definite";
    "banded" "N:OFFSETS[:DOMINANCE]" "100000:-300,-1,1,300:1.5" "random values on the diagonals at these offsets, and DOMINANCE (1.1 unless given) times their sum on the main one; nonsymmetric";
    "strided" "N:STRIDE" "100000:8" "one in each row, STRIDE columns apart: a product reads every STRIDE-th element";
    "wathen" "NXxNY[:SEED]" "100x100" "mass matrix of elements with 8 nodes and random densities; symmetric positive definite";
    "obstacle" "NXxNY" "200x200" "membrane over an obstacle, as a bounded quadratic program, 5-point; symmetric positive definite";
    "least-surface" "NXxNY" "202x202" "surface of least area over an obstacle, likewise; symmetric positive definite";
    "power-law" "N" "1000000" "network with power-law rows, 3.3 entries a row; diagonally dominant";
    "markov" "NXxNY[:D|:p]" "1025x513" "Markov chain of two populations: I − D·P with discount D (0.999 unless given), or P itself; nonsymmetric";
    "dense" "N[xCOLUMNS]" "2000" "every entry stored; symmetric positive definite if square";
    "random" "N:PER_ROW[:SEED]" "100000:8:1" "PER_ROW random entries in every row; diagonally dominant";
    "alike" "NAME[:PART]" "protein" "look-alikes of Bell and Garland's matrices, and of Rupp's, rows divided by PART: dense, protein, spheres, cantilever, wind-tunnel, harbor, qcd, ship, economics, epidemiology, accelerator, circuit, webbase, lp, rm07r, hamrle3, kkt-power";
}

/// The model to generate.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Model {
    Poisson { size: grid::Size, dimensions: usize, corners: bool },
    PoissonP1 { m: usize },
    Elasticity3d { m: usize },
    Convection { size: grid::Size, dimensions: usize, peclet: f64 },
    Helmholtz { size: grid::Size, wave_number: f64 },
    Elasticity2d { m: usize },
    CrossDiffusion { m: usize, species: usize },
    Lscm(surface::From),
    Smooth(surface::From),
    Spe10Like { seed: u64, cells: grid::Size },
    Banded { n: usize, offsets: Vec<i64>, dominance: f64 },
    Strided { n: usize, stride: usize },
    Wathen { size: grid::Size, seed: u64 },
    Energy(Energy, grid::Size),
    PowerLaw { n: usize },
    Markov { size: grid::Size, discount: Option<f64> },
    Dense { size: [usize; 2] },
    Random { n: usize, per_row: usize, seed: u64 },
    Alike { shape: &'static Shape, part: usize },
}

/// A matrix given by name, such as `gen:poisson2d:512x512`.
///
/// ```
/// use lacuna_io::Spec;
///
/// let a = Spec::parse("gen:poisson2d:30x20")?.build::<f64>()?;
/// assert_eq!((a.rows(), a.nnz()), (600, 2900));
/// # Ok::<(), lacuna_engine::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    text: String,
    model: Model,
}

impl Spec {
    /// Prefix of a name where a file name is also accepted.
    pub const PREFIX: &'static str = "gen:";

    /// All generators.
    pub fn list() -> &'static [Generator] {
        GENERATORS
    }

    /// Parses a name with its arguments; the prefix `gen:` may be omitted.
    ///
    /// # Errors
    /// When there is no generator of this name, or its arguments are missing, zero, too large or not numbers.
    /// The error lists the alternatives and shows an example.
    pub fn parse(text: &str) -> Result<Self> {
        let body = text.trim().strip_prefix(Self::PREFIX).unwrap_or(text.trim());
        let mut parts = body.split(':');
        let name = parts.next().unwrap_or_default();
        let Some(generator) = GENERATORS.iter().find(|g| g.name == name) else {
            let names: Vec<_> = GENERATORS.iter().map(|g| g.name).collect();
            let near = nearest(names.iter().copied(), name);
            let near = near.map_or(String::new(), |near| format!(" (did you mean `{near}`?)"));
            return Err(Error::Argument {
                what: shown_name(text).into(),
                message: format!(
                    "no generator is called `{}`{near}; there are {}; for example {}",
                    shown_word(name),
                    names.join(", "),
                    GENERATORS[1].example
                ),
            });
        };
        let mut arguments = Arguments::new(text, generator, parts.collect());
        let model = arguments.model()?;
        arguments.finish()?;
        let spec = Self { text: format!("{}{body}", Self::PREFIX), model };
        match spec.entries_at_least() {
            Some(entries) if entries <= u64::from(u32::MAX) => Ok(spec),
            entries => Err(arguments.wrong(&format!(
                "{} entries are more than 32-bit indices count ({})",
                entries.map_or("more than 2⁶⁴".into(), |e| format!("about {e}")),
                u32::MAX
            ))),
        }
    }

    /// Whether the matrix needs a complex number type.
    pub fn is_complex(&self) -> bool {
        matches!(self.model, Model::Helmholtz { .. })
    }

    /// Builds the matrix on the current rayon pool.
    ///
    /// # Errors
    /// When the matrix is complex and `T` is not, an entry exceeds the range of `T`, there are more than
    /// `u32::MAX` entries, or they cannot fit in memory.
    pub fn build<T: Scalar>(&self) -> Result<Csr<T>> {
        compiled_here!(T, |spec: &Spec| -> Result<Csr<T>> {
            let operation = &*shown_name(&spec.text);
            if spec.is_complex() && !T::KIND.is_complex() {
                return Err(Error::Unsupported {
                    operation: operation.into(),
                    message: format!("the matrix is complex, {} is not; use c64 or c32", T::KIND.name()),
                });
            }
            let [rows, entries] = spec.size_about();
            let bytes = entries * (size_of::<u32>() + size_of::<T>()) as f64 + rows * size_of::<u32>() as f64;
            memory::check(operation, bytes as u64)?;
            match &spec.model {
                &Model::Poisson { size, dimensions, corners } => {
                    grid::poisson(operation, size, dimensions, corners)
                }
                &Model::PoissonP1 { m } => elements::poisson_p1(operation, m),
                &Model::Elasticity2d { m } => elements::elasticity2d(operation, m),
                &Model::Elasticity3d { m } => elements::elasticity3d(operation, m),
                &Model::CrossDiffusion { m, species } => elements::cross_diffusion(operation, m, species),
                Model::Lscm(from) => from.surface()?.lscm(operation),
                Model::Smooth(from) => from.surface()?.smooth(operation),
                &Model::Convection { size, dimensions, peclet } => {
                    grid::convection(operation, size, dimensions, peclet)
                }
                &Model::Helmholtz { size, wave_number } => grid::helmholtz(operation, size, wave_number),
                &Model::Spe10Like { seed, cells } => reservoir::spe10_like(operation, seed, cells),
                Model::Banded { n, offsets, dominance } => banded::banded(operation, *n, offsets, *dominance),
                &Model::Strided { n, stride } => banded::strided(operation, n, stride),
                &Model::Wathen { size, seed } => wathen(operation, size, seed),
                &Model::Energy(energy, size) => energy.hessian(operation, size),
                &Model::PowerLaw { n } => network::power_law(operation, n),
                &Model::Markov { size, discount } => grid::markov(operation, size, discount),
                &Model::Dense { size } => network::dense(operation, size),
                &Model::Random { n, per_row, seed } => network::random(operation, n, per_row, seed),
                &Model::Alike { shape, part } => shape.build(operation, part),
            }
        })(self)
    }

    /// The right-hand side of the model: the wells of `spe10-like`, the pins of `lscm`, the given points of `smooth`. `None` for the
    /// other generators.
    ///
    /// # Errors
    /// When it does not fit in memory, or a mesh cannot be read.
    pub fn right_hand_side<T: Scalar>(&self) -> Result<Option<Vec<T>>> {
        compiled_here!(T, |spec: &Spec| -> Result<Option<Vec<T>>> {
            let operation = &*shown_name(&spec.text);
            Ok(match &spec.model {
                &Model::Spe10Like { seed, cells } => Some(reservoir::wells(operation, seed, cells)?),
                Model::Lscm(from) => Some(from.surface()?.pins(operation)?),
                Model::Smooth(from) => Some(from.surface()?.coordinates()),
                _ => None,
            })
        })(self)
    }

    /// A lower bound, nearly tight, of the number of entries; `None` on overflow.
    fn entries_at_least(&self) -> Option<u64> {
        let product =
            |factors: &[usize]| factors.iter().try_fold(1u64, |product, &f| product.checked_mul(f as u64));
        let star = |size: grid::Size, diagonal: bool| {
            let [points, neighbours] = grid::star(size);
            u64::try_from(neighbours + if diagonal { points } else { 0 }).ok()
        };
        match &self.model {
            Model::Poisson { size, corners: true, .. } => product(&size.map(|side| 3 * side - 2)),
            Model::Poisson { size, .. } | Model::Convection { size, .. } | Model::Helmholtz { size, .. } => {
                star(*size, true)
            }
            Model::Spe10Like { cells, .. } => star(*cells, true),
            Model::Markov { size, discount } => star(*size, discount.is_some()),
            &Model::PoissonP1 { m } => product(&[4, m, m]),
            &Model::Elasticity2d { m } => product(&[16, m, m]),
            &Model::Elasticity3d { m } => product(&[18, m, m, m]),
            &Model::CrossDiffusion { m, species } => product(&[4, m, m, species, species]),
            Model::Lscm(from) => from.size().map_or(Some(0), |[points, _]| product(&[8, points])),
            Model::Smooth(from) => from.size().map_or(Some(0), |[points, _]| product(&[24, points])),
            Model::Banded { n, offsets, .. } => {
                let outside = |offset: &i64| offset.unsigned_abs().min(*n as u64);
                product(&[*n, offsets.len() + 1])?.checked_sub(offsets.iter().map(outside).sum())
            }
            // The last column must have a number too.
            &Model::Strided { n, stride } => product(&[n, stride]),
            &Model::Wathen { size: [nx, ny, _], .. } => product(&[36, nx, ny]),
            &Model::Energy(_, [nx, ny, _]) => product(&[3, nx, ny]),
            &Model::PowerLaw { n } => product(&[2, n]),
            Model::Dense { size } => product(size),
            &Model::Random { n, per_row, .. } => product(&[n, per_row]),
            &Model::Alike { shape, part } => Some((shape.rows / part) as u64),
        }
    }
}

impl Spec {
    /// Approximate numbers of rows and entries, rather too low than too high.
    fn size_about(&self) -> [f64; 2] {
        let square = |n: usize, each: f64| [n as f64, n as f64 * each];
        match &self.model {
            Model::Poisson { size, .. }
            | Model::Convection { size, .. }
            | Model::Helmholtz { size, .. }
            | Model::Spe10Like { cells: size, .. }
            | Model::Markov { size, .. } => {
                let [points, _] = grid::star(*size);
                [points as f64, self.entries_at_least().map_or(f64::INFINITY, |entries| entries as f64)]
            }
            &Model::PoissonP1 { m } => square(m * m, 6.5),
            &Model::Elasticity2d { m } => square(2 * m * m, 12.0),
            &Model::Elasticity3d { m } => square(3 * m * (m + 1) * (m + 1), 36.0),
            &Model::CrossDiffusion { m, species } => square(species * m * m, 6.0 * species as f64),
            Model::Lscm(from) => from.size().map_or([0.0; 2], |[points, _]| square(2 * points, 12.0)),
            Model::Smooth(from) => from.size().map_or([0.0; 2], |[points, _]| square(3 * points, 15.0)),
            &Model::Strided { n, .. } => square(n, 1.0),
            &Model::Wathen { size, .. } => square(wathen_rows(size), 12.0),
            &Model::Banded { n, .. } => [n as f64, self.entries_at_least().unwrap_or(u64::MAX) as f64],
            &Model::Energy(_, [nx, ny, _]) => square(nx * ny, 3.0),
            &Model::PowerLaw { n } => square(n, 3.0),
            &Model::Dense { size: [n, cols] } => square(n, cols as f64),
            &Model::Random { n, per_row, .. } => square(n, per_row as f64),
            &Model::Alike { shape, part } => square(shape.rows / part, 1.0),
        }
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Spec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}
