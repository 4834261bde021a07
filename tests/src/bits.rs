//! Comparison by equal bits.
use lacuna_engine::{Cell, Finish, History, NumberType, Scalar, Scope, Vector};
use lacuna_solvers::Outcome;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

/// Whether two numbers have the same bits; any NaN part equals any other, since no standard fixes its bits.
pub fn equal<T: Scalar>(a: T, b: T) -> bool {
    let part = |a: f64, b: f64| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
    bytemuck::bytes_of(&a) == bytemuck::bytes_of(&b) || (part(a.re(), b.re()) && part(a.im(), b.im()))
}

/// Fails unless two slices have the same bits; names the first differing index with both values.
///
/// # Panics
/// If they differ.
#[track_caller]
pub fn same<T: Scalar>(what: &str, got: &[T], want: &[T]) {
    assert_eq!(got.len(), want.len(), "{what}: length");
    let differing = got.iter().zip(want).filter(|(a, b)| !equal(**a, **b)).count();
    if let Some(i) = (0..got.len()).find(|&i| !equal(got[i], want[i])) {
        let hex = |v: &T| bytemuck::bytes_of(v).iter().rev().map(|b| format!("{b:02x}")).collect::<String>();
        panic!(
            "{what}[{i}] of {} ({differing} differ): got {:e} = 0x{}, expected {:e} = 0x{}",
            got.len(),
            got[i],
            hex(&got[i]),
            want[i],
            hex(&want[i])
        );
    }
}

/// The results of a scenario on one backend, to be compared with those on another.
#[derive(Clone, Debug)]
pub struct Trace<T> {
    /// Vectors by name.
    pub numbers: Vec<(String, Vec<T>)>,
    /// Real numbers by name, a history for one.
    pub reals: Vec<(String, Vec<f64>)>,
    /// What is printed, by name.
    pub facts: Vec<(String, String)>,
}

impl<T> Default for Trace<T> {
    fn default() -> Self {
        Trace { numbers: Vec::new(), reals: Vec::new(), facts: Vec::new() }
    }
}

impl<T: Scalar> Trace<T> {
    /// An empty trace.
    pub fn new() -> Self {
        Self::default()
    }
    /// Records numbers.
    pub fn numbers(&mut self, what: impl Into<String>, values: &[T]) {
        self.numbers.push((what.into(), values.to_vec()));
    }
    /// Records a vector of a device.
    ///
    /// # Panics
    /// If it cannot be downloaded.
    pub fn vector(&mut self, dev: &Scope, what: impl Into<String>, v: Vector<T>) {
        self.numbers.push((what.into(), download(dev, v)));
    }
    /// Records cells of a device.
    ///
    /// # Panics
    /// If they cannot be read.
    pub fn cells(&mut self, dev: &Scope, what: impl Into<String>, cells: &[Cell<T>]) {
        self.numbers.push((what.into(), dev.read(cells).unwrap()));
    }
    /// Records real numbers.
    pub fn reals(&mut self, what: impl Into<String>, values: &[f64]) {
        self.reals.push((what.into(), values.to_vec()));
    }
    /// Records any other value.
    pub fn fact(&mut self, what: impl Into<String>, value: impl Debug) {
        self.facts.push((what.into(), format!("{value:?}")));
    }
    /// Records how a program ended.
    pub fn finish(&mut self, what: &str, finish: &Finish, history: &History) {
        let Finish { reason, iterations, restarts, recurrence, confirmed } = *finish;
        self.fact(format!("{what}: reason, iterations, restarts"), (reason, iterations, restarts));
        self.reals(format!("{what}: recurrence, confirmed"), &[recurrence, confirmed]);
        self.reals(format!("{what}: history"), &history.values);
    }
    /// Records how a solve ended.
    pub fn outcome(&mut self, what: &str, outcome: &Outcome) {
        let counts = (outcome.reason, outcome.iterations, outcome.restarts, outcome.history_stride);
        self.fact(format!("{what}: reason, iterations, restarts, stride"), counts);
        self.reals(format!("{what}: history"), &outcome.history);
        self.reals(format!("{what}: residuals"), &[outcome.residual, outcome.true_residual]);
    }

    /// A hash of the bits of everything recorded (FNV-1a), the same for any NaN.
    pub fn digest(&self) -> u64 {
        let facts = self.facts.iter().flat_map(|(_, fact)| fact.bytes());
        let numbers = self.numbers.iter().flat_map(|(_, numbers)| numbers).flat_map(|v| [v.re(), v.im()]);
        let reals = self.reals.iter().flat_map(|(_, reals)| reals).copied().chain(numbers);
        let reals = reals.map(|real| if real.is_nan() { f64::NAN } else { real });
        let bytes = facts.chain(reals.flat_map(f64::to_le_bytes));
        bytes.fold(0xcbf2_9ce4_8422_2325, |h, byte| (h ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
    }

    /// Fails unless everything recorded has the same bits.
    ///
    /// # Panics
    /// If something differs.
    #[track_caller]
    pub fn agrees_with(&self, want: &Self, context: &str) {
        for (what, got, want) in pairs(context, &self.facts, &want.facts) {
            assert_eq!(got, want, "{context}: {what}");
        }
        for (what, got, want) in pairs(context, &self.reals, &want.reals) {
            same(&format!("{context}: {what}"), got, want);
        }
        for (what, got, want) in pairs(context, &self.numbers, &want.numbers) {
            same(&format!("{context}: {what}"), got, want);
        }
    }
}

/// The values recorded under each name in two traces, which must have the same names.
#[track_caller]
fn pairs<'a, V>(
    context: &str,
    got: &'a [(String, V)],
    want: &'a [(String, V)],
) -> impl Iterator<Item = (&'a str, &'a V, &'a V)> {
    let names = |all: &'a [(String, V)]| all.iter().map(|(what, _)| what.as_str()).collect::<Vec<_>>();
    assert_eq!(names(got), names(want), "{context}: what was recorded");
    got.iter().zip(want).map(|((what, got), (_, want))| (what.as_str(), got, want))
}

/// Downloads a device's vector.
///
/// # Panics
/// If it cannot be downloaded.
pub fn download<T: Scalar>(dev: &Scope, v: Vector<T>) -> Vec<T> {
    let mut values = vec![T::zero(); v.len];
    dev.download(v, &mut values).unwrap();
    values
}

/// Uploads a host slice to a new vector.
///
/// # Panics
/// If there is no memory for it.
pub fn upload<T: Scalar>(dev: &Scope, values: &[T]) -> Vector<T> {
    let v = dev.vector(values.len()).unwrap();
    dev.upload(values, v).unwrap();
    v
}

/// New cells with these values.
///
/// # Panics
/// If they cannot be created.
pub fn cells_of<T: Scalar>(dev: &Scope, values: &[T]) -> Vec<Cell<T>> {
    let run = dev.run_of_cells::<T>(values.len()).unwrap();
    let cells: Vec<_> = (0..values.len()).map(|i| run.at(i)).collect();
    for (cell, value) in cells.iter().zip(values) {
        dev.write(*cell, *value).unwrap();
    }
    cells
}

/// Where a scenario is in the source, its context and its number type.
type Scenario = ((&'static str, u32, u32), String, NumberType);

/// What a scenario gives on the reference: computed once in a process, for all devices that it runs on.
///
/// # Panics
/// If the scenario does.
pub fn expected<T: Scalar>(
    place: (&'static str, u32, u32),
    context: &str,
    run: impl FnOnce(&Scope) -> Trace<T>,
) -> Arc<Trace<T>> {
    static KNOWN: Mutex<BTreeMap<Scenario, Arc<dyn Any + Send + Sync>>> = Mutex::new(BTreeMap::new());
    let lock = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let scenario = (place, context.to_owned(), T::KIND);
    let known = lock().get(&scenario).cloned();
    if let Some(known) = known.and_then(|known| known.downcast().ok()) {
        return known;
    }
    let computed = Arc::new(run(&crate::reference()));
    lock().insert(scenario, Arc::clone(&computed) as Arc<dyn Any + Send + Sync>);
    computed
}

/// Runs the same block, which ends in a [`Trace`], on the backend under test and on the serial reference, and
/// compares. What is different in any way **must** have another context.
#[macro_export]
macro_rules! on_both {
    ($make:expr, $context:expr, |$dev:ident| $body:block) => {{
        let scenario = |$dev: &lacuna_engine::Scope| -> $crate::bits::Trace<_> { $body };
        let context = ($context).to_string();
        let got = scenario(&$make().scope());
        let want = $crate::bits::expected((file!(), line!(), column!()), &context, scenario);
        got.agrees_with(&want, &context);
    }};
}
