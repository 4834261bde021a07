//! What a factorisation costs.
use crate::failure::unsupported;
use lacuna_engine::Result;

/// Entries of factors and operations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Count {
    pub(crate) entries: f64,
    pub(crate) operations: f64,
}

impl Count {
    /// Of a dense block.
    pub(crate) fn dense(n: usize) -> Self {
        let n = n as f64;
        Count { entries: n * n, operations: 2.0 / 3.0 * n * n * n }
    }
    /// Operations for each entry: how much dense blocks gain.
    pub(crate) fn density(&self) -> f64 {
        self.operations / self.entries.max(1.0)
    }
}

/// The cost of a factorisation, counted before it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Cost {
    /// Entries of the factors.
    pub entries: f64,
    /// Additions, multiplications and divisions of real numbers; a complex matrix takes four times as many.
    pub operations: f64,
    /// Bytes of the factors and of what is kept while they are made.
    pub bytes: f64,
    /// Seconds on one core of the machine by whose times the model was fitted.
    pub seconds: f64,
}

/// The most that a factorisation may cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Bytes.
    pub bytes: f64,
    /// Operations.
    pub operations: f64,
}

impl Limits {
    /// Refuses what exceeds the limits.
    pub(crate) fn check(&self, cost: &Cost) -> Result<()> {
        let gib = |bytes: f64| bytes / (1u64 << 30) as f64;
        if cost.bytes > self.bytes {
            let (needs, most) = (gib(cost.bytes), gib(self.bytes));
            return Err(unsupported(format!(
                "the factors would take {needs:.1} GiB, the limit is memory={most}; {ADVICE}"
            )));
        }
        if cost.operations > self.operations {
            let (needs, most) = (cost.operations / 1e9, self.operations / 1e9);
            return Err(unsupported(format!(
                "it would take {needs:.3} times 10^9 operations, the limit is work={most}; {ADVICE}"
            )));
        }
        Ok(())
    }
}

const ADVICE: &str = "iterate with another preconditioner, or raise the limit";
