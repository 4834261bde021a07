//! The arguments of a generator, read one by one.
use super::alike::Shape;
use super::energies::Energy;
use super::spec::{Generator, Model};
use super::{grid, reservoir, surface};
use lacuna_engine::text::{shown_name, shown_word};
use lacuna_engine::{Error, Result};

/// The arguments after the name, consumed one by one.
pub(super) struct Arguments<'a> {
    text: &'a str,
    generator: &'static Generator,
    parts: Vec<&'a str>,
    next: usize,
}

impl<'a> Arguments<'a> {
    pub(super) fn new(text: &'a str, generator: &'static Generator, parts: Vec<&'a str>) -> Self {
        Arguments { text, generator, parts, next: 0 }
    }

    /// The model for the generator's name and the arguments.
    pub(super) fn model(&mut self) -> Result<Model> {
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
            "elasticity2d" => Model::Elasticity2d { m: self.count("M")? },
            "cross-diffusion" => self.cross_diffusion()?,
            "lscm" => Model::Lscm(self.mesh()?),
            "smooth" => Model::Smooth(self.mesh()?),
            "spe10-like" => self.spe10_like()?,
            "banded" => self.banded()?,
            "strided" => Model::Strided { n: self.count("N")?, stride: self.count("STRIDE")? },
            "wathen" => {
                let (size, _) = self.size(2..=2)?;
                let seed = self.optional().unwrap_or("1");
                Model::Wathen { size, seed: self.seed(seed)? }
            }
            "obstacle" => Model::Energy(Energy::Obstacle, self.size(2..=2)?.0),
            "least-surface" => Model::Energy(Energy::Surface, self.size(2..=2)?.0),
            "power-law" => Model::PowerLaw { n: self.count("N")? },
            "markov" => self.markov()?,
            "dense" => self.dense()?,
            "alike" => self.alike()?,
            _ => self.random()?,
        })
    }

    /// The largest number of unknowns a node.
    const SPECIES: usize = 16;
    /// The largest number of diagonals beside the main one.
    const OFFSETS: usize = 1000;

    fn cross_diffusion(&mut self) -> Result<Model> {
        let (m, species) = (self.count("M")?, self.count("SPECIES")?);
        if species > Self::SPECIES {
            return Err(self.wrong(&format!("SPECIES should be at most {}, got {species}", Self::SPECIES)));
        }
        Ok(Model::CrossDiffusion { m, species })
    }

    /// A number of cells, or the name of a file, which may hold colons.
    fn mesh(&mut self) -> Result<surface::From> {
        let part = self.required("M or FILE.obj")?;
        if part.bytes().all(|b| b.is_ascii_digit()) {
            return Ok(surface::From::Hills(self.positive("M", part)?));
        }
        let name = self.parts[self.next - 1..].join(":");
        self.next = self.parts.len();
        match name.to_ascii_lowercase().ends_with(".obj") {
            true => Ok(surface::From::File(name)),
            false => {
                let name = shown_word(&name);
                Err(self.wrong(&format!("M should be a positive whole number or a file .obj, got `{name}`")))
            }
        }
    }

    fn spe10_like(&mut self) -> Result<Model> {
        let seed = self.required("SEED")?;
        let seed = self.seed(seed)?;
        let cells = match self.parts.get(self.next) {
            Some(_) => self.size(3..=3)?.0,
            None => reservoir::CELLS,
        };
        Ok(Model::Spe10Like { seed, cells })
    }

    fn banded(&mut self) -> Result<Model> {
        let (n, listed) = (self.count("N")?, self.required("OFFSETS")?);
        let mut offsets = Vec::new();
        for word in listed.split(',') {
            let read = word.parse::<i64>().ok().filter(|k| *k != 0 && k.unsigned_abs() < n as u64);
            let Some(offset) = read.filter(|k| !offsets.contains(k) && offsets.len() < Self::OFFSETS) else {
                let most = Self::OFFSETS;
                return Err(self.wrong(&format!(
                    "OFFSETS should be up to {most} different whole numbers between -{n} and {n}, not 0, got `{}`",
                    shown_word(word)
                )));
            };
            offsets.push(offset);
        }
        Ok(Model::Banded { n, offsets, dominance: self.number("DOMINANCE")?.unwrap_or(1.1) })
    }

    fn dense(&mut self) -> Result<Model> {
        let part = self.required("N")?;
        let (n, cols) = part.split_once('x').unwrap_or((part, part));
        Ok(Model::Dense { size: [self.positive("N", n)?, self.positive("COLUMNS", cols)?] })
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
            let (names, name) = (Shape::names(), shown_word(name));
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
    pub(super) fn finish(&self) -> Result<()> {
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
    pub(super) fn wrong(&self, message: &str) -> Error {
        let Generator { name, arguments, example, .. } = self.generator;
        Error::Argument {
            what: shown_name(self.text).into(),
            message: format!("{message}; it is called as gen:{name}:{arguments}, for example {example}"),
        }
    }
}
