//! Programs that a search runs again and again.
use lacuna_engine::{Device, History, Plan, Recorder, Result, Run, Scalar};
use std::collections::HashMap;
use std::hash::Hash;

/// Programs that are kept.
const PLANS: usize = 48;

/// Programs by name and what else they depend on, each recorded once.
pub(crate) struct Programs<K>(HashMap<(&'static str, K), Plan>);

impl<K: Eq + Hash> Programs<K> {
    pub(crate) fn new() -> Self {
        Programs(HashMap::new())
    }

    /// Runs the program of a key, which is recorded the first time.
    pub(crate) fn run<T: Scalar>(
        &mut self,
        dev: &Device,
        key: (&'static str, K),
        record: impl FnOnce(&mut Recorder<'_, T>),
    ) -> Result<()> {
        if !self.0.contains_key(&key) {
            // A cycle uses few; numbers of columns that have passed do not come back.
            if self.0.len() == PLANS {
                self.0.clear();
            }
            let mut k = Recorder::new(dev, key.0);
            record(&mut k);
            let plan = dev.plan(k.finish()?)?;
            return execute(self.0.entry(key).or_insert(plan));
        }
        self.0.get_mut(&key).map_or(Ok(()), execute)
    }
}

/// Runs a program that has no iterations.
pub(crate) fn execute(plan: &mut Plan) -> Result<()> {
    plan.execute(Run { limit: 1, history: &mut History::off(), watch: None }).map(drop)
}
