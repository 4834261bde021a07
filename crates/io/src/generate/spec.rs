//! The names of the generators and their arguments.
use super::alike::{Shape, look_alikes};
use super::{elements, grid, network, reservoir};
use lacuna_engine::text::{shown_name, shown_word};
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
    "spe10-like" "SEED" "1" "reservoir of 60x220x85 cells, log-normal permeability over five decades; symmetric positive definite";
    "power-law" "N" "1000000" "network with power-law rows, 3.3 entries a row; diagonally dominant";
    "markov" "NXxNY[:D|:p]" "1025x513" "Markov chain of two populations: I − D·P with discount D (0.999 unless given), or P itself; nonsymmetric";
    "dense" "N" "2000" "every entry stored; symmetric positive definite";
    "random" "N:PER_ROW[:SEED]" "100000:8:1" "PER_ROW random entries in every row; diagonally dominant";
    "alike" "NAME[:PART]" "protein" "look-alikes of Bell and Garland's matrices, rows divided by PART: dense, protein, spheres, cantilever, wind-tunnel, harbor, qcd, ship, economics, epidemiology, accelerator, circuit, webbase, lp";
}

/// The model to generate.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Model {
    Poisson { size: grid::Size, dimensions: usize, corners: bool },
    PoissonP1 { m: usize },
    Elasticity3d { m: usize },
    Convection { size: grid::Size, dimensions: usize, peclet: f64 },
    Helmholtz { size: grid::Size, wave_number: f64 },
    Spe10Like { seed: u64 },
    PowerLaw { n: usize },
    Markov { size: grid::Size, discount: Option<f64> },
    Dense { n: usize },
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
            return Err(Error::Argument {
                what: shown_name(text).into(),
                message: format!(
                    "no generator is called `{}`; there are {}; for example {}",
                    shown_word(name),
                    names.join(", "),
                    GENERATORS[1].example
                ),
            });
        };
        let mut arguments = Arguments { text, generator, parts: parts.collect(), next: 0 };
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
            match spec.model {
                Model::Poisson { size, dimensions, corners } => {
                    grid::poisson(operation, size, dimensions, corners)
                }
                Model::PoissonP1 { m } => elements::poisson_p1(operation, m),
                Model::Elasticity3d { m } => elements::elasticity3d(operation, m),
                Model::Convection { size, dimensions, peclet } => {
                    grid::convection(operation, size, dimensions, peclet)
                }
                Model::Helmholtz { size, wave_number } => grid::helmholtz(operation, size, wave_number),
                Model::Spe10Like { seed } => reservoir::spe10_like(operation, seed),
                Model::PowerLaw { n } => network::power_law(operation, n),
                Model::Markov { size, discount } => grid::markov(operation, size, discount),
                Model::Dense { n } => network::dense(operation, n),
                Model::Random { n, per_row, seed } => network::random(operation, n, per_row, seed),
                Model::Alike { shape, part } => shape.build(operation, part),
            }
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
        match self.model {
            Model::Poisson { size, corners: true, .. } => product(&size.map(|side| 3 * side - 2)),
            Model::Poisson { size, .. } | Model::Convection { size, .. } | Model::Helmholtz { size, .. } => {
                star(size, true)
            }
            Model::Markov { size, discount } => star(size, discount.is_some()),
            Model::PoissonP1 { m } => product(&[4, m, m]),
            Model::Elasticity3d { m } => product(&[18, m, m, m]),
            Model::Spe10Like { .. } => Some(7_780_000),
            Model::PowerLaw { n } => product(&[2, n]),
            Model::Dense { n } => product(&[n, n]),
            Model::Random { n, per_row, .. } => product(&[n, per_row]),
            Model::Alike { shape, part } => Some((shape.rows / part) as u64),
        }
    }
}

impl Spec {
    /// Approximate numbers of rows and entries, rather too low than too high.
    fn size_about(&self) -> [f64; 2] {
        let square = |n: usize, each: f64| [n as f64, n as f64 * each];
        match self.model {
            Model::Poisson { size, .. }
            | Model::Convection { size, .. }
            | Model::Helmholtz { size, .. }
            | Model::Markov { size, .. } => {
                let [points, _] = grid::star(size);
                [points as f64, self.entries_at_least().map_or(f64::INFINITY, |entries| entries as f64)]
            }
            Model::PoissonP1 { m } => square(m * m, 6.5),
            Model::Elasticity3d { m } => square(3 * m * (m + 1) * (m + 1), 36.0),
            Model::Spe10Like { .. } => [1_122_000.0, 7_780_000.0],
            Model::PowerLaw { n } => square(n, 3.0),
            Model::Dense { n } => square(n, n as f64),
            Model::Random { n, per_row, .. } => square(n, per_row as f64),
            Model::Alike { shape, part } => square(shape.rows / part, 1.0),
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

/// The arguments after the name, consumed one by one.
struct Arguments<'a> {
    text: &'a str,
    generator: &'static Generator,
    parts: Vec<&'a str>,
    next: usize,
}

impl<'a> Arguments<'a> {
    /// The model for the generator's name and the arguments.
    fn model(&mut self) -> Result<Model> {
        Ok(match self.generator.name {
            "poisson1d" => Model::Poisson { size: [self.count("N")?, 1, 1], dimensions: 1, corners: false },
            "poisson2d" => self.poisson(2, "9")?,
            "poisson3d" => self.poisson(3, "27")?,
            "poisson-p1" => Model::PoissonP1 { m: self.count("M")? },
            "elasticity3d" => Model::Elasticity3d { m: self.count("M")? },
            "convection" => {
                let (size, dimensions) = self.size(2..=3)?;
                Model::Convection { size, dimensions, peclet: self.number("PECLET")?.unwrap_or(100.0) }
            }
            "helmholtz" => {
                let (size, _) = self.size(2..=2)?;
                let ten_points = std::f64::consts::TAU / 10.0 * (size[0].max(size[1]) as f64 + 1.0);
                Model::Helmholtz { size, wave_number: self.number("K")?.unwrap_or(ten_points) }
            }
            "spe10-like" => {
                let seed = self.required("SEED")?;
                Model::Spe10Like { seed: self.seed(seed)? }
            }
            "power-law" => Model::PowerLaw { n: self.count("N")? },
            "markov" => self.markov()?,
            "dense" => Model::Dense { n: self.count("N")? },
            "alike" => self.alike()?,
            _ => self.random()?,
        })
    }

    fn poisson(&mut self, dimensions: usize, points: &str) -> Result<Model> {
        let (size, _) = self.size(dimensions..=dimensions)?;
        let corners = match self.optional() {
            None => false,
            Some(given) if given == points => true,
            Some(given) if given == (2 * dimensions + 1).to_string() => false,
            Some(given) => {
                return Err(self.wrong(&format!(
                    "the stencil has {} or {points} points, not `{}`",
                    2 * dimensions + 1,
                    shown_word(given)
                )));
            }
        };
        Ok(Model::Poisson { size, dimensions, corners })
    }

    fn markov(&mut self) -> Result<Model> {
        let (size, _) = self.size(2..=2)?;
        if self.parts.get(self.next) == Some(&"p") {
            self.next += 1;
            return Ok(Model::Markov { size, discount: None });
        }
        let discount = self.number("D")?.unwrap_or(0.999);
        if discount > 1.0 {
            return Err(self.wrong(&format!("a discount is at most 1, got {discount}")));
        }
        Ok(Model::Markov { size, discount: Some(discount) })
    }

    fn random(&mut self) -> Result<Model> {
        let (n, per_row) = (self.count("N")?, self.count("PER_ROW")?);
        if per_row > n {
            return Err(self.wrong(&format!("{per_row} entries do not fit a row of {n}")));
        }
        let seed = self.optional().unwrap_or("1");
        Ok(Model::Random { n, per_row, seed: self.seed(seed)? })
    }

    fn alike(&mut self) -> Result<Model> {
        let name = self.required("NAME")?;
        let Some(shape) = Shape::named(name) else {
            let names = look_alikes();
            let (names, name) = (names.join(", "), shown_word(name));
            return Err(self.wrong(&format!("NAME should be one of {names}, got `{name}`")));
        };
        let part = self.optional().map_or(Ok(1), |part| self.positive("PART", part))?;
        Ok(Model::Alike { shape, part })
    }

    /// The next argument, if there is one.
    fn optional(&mut self) -> Option<&'a str> {
        let part = self.parts.get(self.next).copied();
        self.next += 1;
        part
    }

    /// The next argument, which is required.
    fn required(&mut self, what: &str) -> Result<&'a str> {
        match self.optional() {
            Some(part) if !part.is_empty() => Ok(part),
            _ => Err(self.wrong(&format!("{what} is missing"))),
        }
    }

    /// A positive number that fits in 32 bits.
    fn positive(&self, what: &str, part: &str) -> Result<usize> {
        let shown = shown_word(part);
        match part.parse::<u64>() {
            Ok(0) => Err(self.wrong(&format!("{what} should be at least 1, got 0"))),
            Ok(n) if n <= u64::from(u32::MAX) => Ok(n as usize),
            _ if !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()) => {
                Err(self.wrong(&format!("{what} should be at most {}, got {shown}", u32::MAX)))
            }
            _ => Err(self.wrong(&format!("{what} should be a positive whole number, got `{shown}`"))),
        }
    }

    fn count(&mut self, what: &str) -> Result<usize> {
        let part = self.required(what)?;
        self.positive(what, part)
    }

    /// Sizes `NXxNY…`, and their number.
    fn size(&mut self, dimensions: std::ops::RangeInclusive<usize>) -> Result<(grid::Size, usize)> {
        let part = self.required("the size")?;
        let sides: Vec<_> = part.split('x').collect();
        if !dimensions.contains(&sides.len()) {
            let expected =
                if dimensions.end() == &3 && dimensions.start() == &3 { "NXxNYxNZ" } else { "NXxNY" };
            return Err(self.wrong(&format!("the size should be {expected}, got `{}`", shown_word(part))));
        }
        let mut size = [1; 3];
        for ((side, part), name) in size.iter_mut().zip(&sides).zip(["NX", "NY", "NZ"]) {
            *side = self.positive(name, part)?;
        }
        Ok((size, sides.len()))
    }

    /// An optional number, finite and not negative.
    fn number(&mut self, what: &str) -> Result<Option<f64>> {
        let Some(part) = self.optional() else { return Ok(None) };
        match part.parse::<f64>() {
            Ok(number) if number.is_finite() && number >= 0.0 => Ok(Some(number)),
            _ => Err(self.wrong(&format!("{what} should be a number from 0, got `{}`", shown_word(part)))),
        }
    }

    fn seed(&self, part: &str) -> Result<u64> {
        let shown = shown_word(part);
        part.parse().map_err(|_| self.wrong(&format!("SEED should be a whole number from 0, got `{shown}`")))
    }

    /// An error if arguments are left over.
    fn finish(&self) -> Result<()> {
        match self.parts.get(self.next) {
            Some(part) => Err(self.wrong(&format!(
                "nothing is expected after `{}`, got `{}`",
                shown_word(self.parts[..self.next].join(":")),
                shown_word(part)
            ))),
            None => Ok(()),
        }
    }

    /// An error that shows an example of the generator.
    fn wrong(&self, message: &str) -> Error {
        let Generator { name, arguments, example, .. } = self.generator;
        Error::Argument {
            what: shown_name(self.text).into(),
            message: format!("{message}; it is called as gen:{name}:{arguments}, for example {example}"),
        }
    }
}
