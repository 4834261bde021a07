//! Settings as text, `key=value; …`.
use lacuna_engine::text::did_you_mean;
use lacuna_engine::{Error, Result, Scalar};
use lacuna_solvers::Side;
use lacuna_solvers::{Norm, Stop};
use std::str::FromStr;

/// The settings of a system, as [`LinearSystem`](crate::LinearSystem) has them. Names may have options, as in
/// `method=gmres:restart=50`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// The method by name.
    pub method: String,
    /// The preconditioner by name.
    pub preconditioner: String,
    /// The storage format by name.
    pub format: String,
    /// The order of rows and columns by name.
    pub order: String,
    /// The scaling of rows and columns by name.
    pub scale: String,
    /// Mixed precision by refinement.
    pub refine: bool,
    /// The method named and no other: see [`LinearSystem::strict`](crate::LinearSystem::strict).
    pub strict: bool,
    /// Whether `gmres` takes its preconditioner from the left.
    pub left: bool,
    /// Iterations of a cycle.
    pub restart: Option<usize>,
    /// `δ` in `min ‖b − A x‖² + δ² ‖x‖²`, for the methods of least squares.
    pub damp: f64,
    /// `σ` in `(A − σ I) x = b`.
    pub shift: f64,
    /// The relative tolerance; that of [`LinearSystem`](crate::LinearSystem) if there is none.
    pub rtol: Option<f64>,
    /// The absolute tolerance.
    pub atol: f64,
    /// Iterations at most.
    pub max_iters: Option<u64>,
    /// The norm of the residual that is tested.
    pub norm: Norm,
    /// The factor of the residual beyond which a solve counts as diverged.
    pub dtol: Option<f64>,
}

/// The keys, each with what it expects.
const KEYS: &[(&str, &str)] = &[
    ("method", "a name with options"),
    ("preconditioner", "a name with options"),
    ("format", "a name"),
    ("order", "a name"),
    ("scale", "a name"),
    ("refine", "yes or no"),
    ("strict", "yes or no"),
    ("side", "left or right"),
    ("restart", "a whole number from 1"),
    ("damp", "a number of at least 0"),
    ("shift", "a finite number"),
    ("rtol", "a number of at least 0"),
    ("atol", "a number of at least 0"),
    ("max_iters", "a whole number"),
    ("norm", "2 or max"),
    ("dtol", "a number of at least 0"),
];

impl Default for Settings {
    fn default() -> Self {
        Settings {
            method: "auto".into(),
            preconditioner: "auto".into(),
            format: "auto".into(),
            order: "none".into(),
            scale: "none".into(),
            refine: false,
            strict: false,
            left: false,
            restart: None,
            damp: 0.0,
            shift: 0.0,
            rtol: None,
            atol: 0.0,
            max_iters: None,
            norm: Norm::Two,
            dtol: None,
        }
    }
}

impl Settings {
    /// The settings in a text, `key=value` separated by semicolons; the rest has its defaults. The keys are those of the fields,
    /// and `side=left` for `left`.
    ///
    /// # Errors
    /// [`Error::Argument`] for a key that is unknown or given twice, with those there are, and for a value that it does not take.
    /// Names are checked when a system is made.
    pub fn parse(text: &str) -> Result<Self> {
        let (mut settings, mut given) = (Settings::default(), Vec::new());
        for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').map_or((part, None), |(key, value)| (key, Some(value)));
            let (key, value) = (key.trim(), value.map(str::trim));
            let Some((key, expected)) = KEYS.iter().find(|(known, _)| *known == key) else {
                let keys: Vec<_> = KEYS.iter().map(|(key, _)| *key).collect();
                let near = did_you_mean(keys.iter().copied(), key);
                return Err(wrong(format!(
                    "expected one of the keys {}, got `{key}`{near}",
                    keys.join(", ")
                )));
            };
            if given.contains(key) {
                return Err(wrong(format!("{key}: given twice")));
            }
            given.push(*key);
            let value = value.unwrap_or_default();
            if settings.set(key, value).is_none() {
                return Err(wrong(format!("{key}: expected {expected}, got `{value}`")));
            }
        }
        Ok(settings)
    }

    fn set(&mut self, key: &str, value: &str) -> Option<()> {
        let name = || (!value.is_empty()).then(|| value.to_owned());
        match key {
            "method" => self.method = name()?,
            "preconditioner" => self.preconditioner = name()?,
            "format" => self.format = name()?,
            "order" => self.order = name()?,
            "scale" => self.scale = name()?,
            "refine" => self.refine = answer(value)?,
            "strict" => self.strict = answer(value)?,
            "side" => {
                self.left = match value {
                    "left" => true,
                    "right" => false,
                    _ => return None,
                }
            }
            "restart" => self.restart = Some(parsed(value, |count| *count > 0)?),
            "damp" => self.damp = tolerance(value)?,
            "shift" => self.shift = parsed(value, |shift: &f64| shift.is_finite())?,
            "rtol" => self.rtol = Some(tolerance(value)?),
            "atol" => self.atol = tolerance(value)?,
            "max_iters" => self.max_iters = Some(parsed(value, |_| true)?),
            "norm" => {
                self.norm = match value {
                    "2" => Norm::Two,
                    "max" => Norm::Max,
                    _ => return None,
                }
            }
            _ => self.dtol = Some(tolerance(value)?),
        }
        Some(())
    }

    /// The stopping criteria, for a number type.
    pub fn stop<T: Scalar>(&self) -> Stop {
        let Settings { rtol, atol, max_iters, norm, dtol, .. } = *self;
        let default = Stop::default();
        let rtol = rtol.unwrap_or(crate::LinearSystem::<T>::DEFAULT_RTOL);
        default.rtol(rtol).atol(atol).max_iters(max_iters).norm(norm).dtol(dtol.unwrap_or(default.dtol))
    }

    pub(super) fn side(&self) -> Side {
        if self.left { Side::Left } else { Side::Right }
    }
}

fn wrong(message: String) -> Error {
    Error::Argument { what: "settings".into(), message }
}

fn answer(value: &str) -> Option<bool> {
    match value {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

fn parsed<N: FromStr>(value: &str, may: impl Fn(&N) -> bool) -> Option<N> {
    value.parse().ok().filter(may)
}

fn tolerance(value: &str) -> Option<f64> {
    parsed(value, |number: &f64| *number >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::Settings;
    use lacuna_solvers::Norm;

    #[test]
    fn every_key_is_read_and_others_are_refused_by_name() {
        let text = "method=gmres:restart=50;preconditioner = ilu0 ;format=csr;order=rcm;scale=both;refine=yes;strict=yes;\
                    side=left;restart=7;damp=0.5;shift=-2;rtol=1e-3;atol=1;max_iters=9;norm=max;dtol=1e9;";
        let settings = Settings::parse(text).unwrap();
        assert_eq!((&*settings.method, &*settings.preconditioner), ("gmres:restart=50", "ilu0"));
        assert_eq!((&*settings.format, &*settings.order, &*settings.scale), ("csr", "rcm", "both"));
        assert!(settings.refine && settings.strict && settings.left);
        assert_eq!((settings.restart, settings.damp, settings.rtol), (Some(7), 0.5, Some(1e-3)));
        assert_eq!(settings.shift, -2.0);
        assert_eq!((settings.atol, settings.max_iters, settings.dtol), (1.0, Some(9), Some(1e9)));
        assert_eq!(settings.norm, Norm::Max);
        assert_eq!(Settings::parse(" ; ").unwrap(), Settings::default());
        let message = |text: &str| Settings::parse(text).unwrap_err().to_string();
        assert!(message("tol=1").contains("expected one of the keys method, preconditioner"));
        assert_eq!(message("rtol=-1"), "settings: rtol: expected a number of at least 0, got `-1`");
        assert!(message("rtol=nan").contains("at least 0"));
        assert!(message("restart=0").contains("from 1"));
        assert!(message("strict").contains("yes or no"));
        assert!(message("method=cg;method=gmres").contains("given twice"));
    }
}
