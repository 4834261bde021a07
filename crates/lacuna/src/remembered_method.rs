//! The method and preconditioner that solved a matrix of the same structure fastest, kept on disk.
use lacuna_engine::Cached;
use lacuna_engine::{Device, Scalar};
use lacuna_formats::Csr;
use lacuna_solvers::{Options, method, preconditioner};

/// What is remembered for a structure, a number type and a device.
pub(crate) struct RememberedMethod(Cached);

/// A method and a preconditioner by name.
pub(crate) type Pair = (String, String);

impl RememberedMethod {
    /// The memory of a matrix on a device: a file as for [`crate::tune_format`].
    pub(crate) fn of<T: Scalar>(dev: &Device, a: &Csr<T>) -> Self {
        let device = dev.info();
        let hash = format!("{:032x}", a.structure_hash());
        let (units, version) = (device.units.to_string(), env!("CARGO_PKG_VERSION"));
        RememberedMethod(Cached::new(
            "method",
            &[&hash, T::KIND.name(), device.backend, &device.name, &units, version],
        ))
    }

    /// The pair remembered, if these names are still known.
    pub(crate) fn recall<T: Scalar>(&self) -> Option<Pair> {
        parsed::<T>(&self.0.read()?)
    }

    /// Remembers a pair in place of the former one.
    pub(crate) fn keep(&self, method: &str, preconditioner: &str) {
        self.0.keep(format!("{method}\n{preconditioner}\n").as_bytes());
    }
}

fn parsed<T: Scalar>(bytes: &[u8]) -> Option<Pair> {
    let mut lines = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?.lines();
    let pair = (lines.next()?, lines.next()?);
    let known = method::<T>(pair.0, &Options::default()).is_ok() && preconditioner::<T>(pair.1).is_ok();
    (known && lines.next().is_none()).then(|| (pair.0.into(), pair.1.into()))
}

#[cfg(test)]
mod tests {
    use super::parsed;

    #[test]
    fn only_whole_answers_with_known_names_are_taken() {
        let taken = |text: &str| parsed::<f64>(text.as_bytes()).map(|(m, p)| format!("{m} {p}"));
        assert_eq!(taken("cg\nilut:drop=0.001,fill=10\n").as_deref(), Some("cg ilut:drop=0.001,fill=10"));
        for broken in
            ["", "cg", "cg\n", "cg\njaco", "cg\njacobi", "cg\njacoby\n", "xyz\njacobi\n", "cg\nnone\nmore\n"]
        {
            assert_eq!(taken(broken), None, "{broken:?}");
        }
    }
}
