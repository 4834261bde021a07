//! Kernels generated for programs: what plans share with later plans of the same program or the same
//! matrices.
use crate::compiler::Code;
use crate::driver::Address;
use crate::jit::{Jit, Planning, names};
use crate::memory::Buffer;
use crate::plan::{Owned, Planner};
use bytemuck::cast_slice;
use lacuna_engine::encode::Encoded;
use lacuna_engine::{Result, Scalar};
use lacuna_gpu::{Laid, Repacked};
use std::sync::Arc;

/// Buffers on the device that several plans may use: returned once the last holder is dropped.
#[derive(Clone)]
pub(crate) struct Hold<const N: usize> {
    _alive: Arc<()>,
    pub(crate) addresses: [Address; N],
}

/// Windows, columns and values of repacked matrices.
pub(crate) type Entries = Hold<3>;

/// A kernel generated for a program, and the data shared by all plans of that program.
#[derive(Clone)]
pub(crate) struct Kept {
    pub(crate) jit: Jit,
    /// Words of half the exchange, and of the buffer of operands.
    pub(crate) half: usize,
    pub(crate) shared: usize,
    pub(crate) entries: Entries,
    /// The table, and the parameters of the blocks.
    pub(crate) tables: Hold<2>,
}

impl Planner<'_> {
    /// The kernel generated for a program, if there is one, from the cache if possible. The entries of its
    /// matrices go to the device once it is compiled.
    pub(crate) fn jit<T: Scalar>(&mut self, name: &str, encoded: &Encoded<T>) -> Result<Option<Code<Kept>>> {
        let wanted = self.mode as u32;
        if let Some(kept) = self.plans.program(encoded, wanted) {
            return Ok(Some(Code::Ready(kept)));
        }
        let (layout, jit, laid) = match self.planning().jit(encoded, name)? {
            None => return Ok(None),
            Some(Code::Compiling(job)) => return Ok(Some(Code::Compiling(job))),
            Some(Code::Ready(made)) => made,
        };
        let entries = match laid {
            Laid::Cached(entries) => entries,
            Laid::New(Repacked { windows, columns, values }, key, way) => {
                let parts = [cast_slice(&windows), cast_slice(&columns), cast_slice(&values)];
                let entries = self.hold(parts, "the entries of matrices")?;
                self.plans.keep(key, way, entries.clone());
                entries
            }
        };
        let params = cast_slice(&layout.generated.params);
        let tables = self.hold([cast_slice(&encoded.words), params], "the tables of a program")?;
        let kept = Kept { jit, half: layout.half, shared: layout.shared, entries, tables };
        self.plans.keep_program(encoded, wanted, kept.clone());
        Ok(Some(Code::Ready(kept)))
    }

    fn planning(&mut self) -> Planning<'_> {
        let Planner { driver, store, plans, mode, compile, .. } = self;
        Planning { driver, store, plans, mode: *mode, compile: *compile }
    }

    /// Uploads these bytes into buffers that live until the last holder is dropped.
    fn hold<const N: usize>(&mut self, parts: [&[u8]; N], what: &str) -> Result<Hold<N>> {
        let alive = Arc::new(());
        let (mut owned, mut addresses) = (Owned { alive: alive.clone(), buffers: Vec::new() }, [0; N]);
        let Planner { driver, store, .. } = self;
        let mut fill = || {
            for (address, bytes) in addresses.iter_mut().zip(parts) {
                let buffer = store.pool.take(driver, bytes.len(), what)?;
                *address = buffer.address;
                owned.buffers.push(buffer);
                driver.upload(bytes, *address, what)?;
            }
            Ok(())
        };
        let filled = fill();
        // Buffers without a holder are returned to the pool later.
        self.owned.push(owned);
        filled.map(|()| Hold { _alive: alive, addresses })
    }

    /// The buffers of a plan of a generated kernel.
    pub(crate) fn build_jit<T: Scalar>(
        &mut self,
        encoded: &Encoded<T>,
        name: &str,
        kept: &Kept,
        owned: &mut Owned,
    ) -> Result<Jit> {
        let mut jit = kept.jit;
        let words = names(self.store, encoded, name)?;
        let what = "the buffers of a program";
        let Planner { driver, store, .. } = self;
        let (driver, pool) = (&**driver, &mut store.pool);
        let mut keep = |buffer: Buffer| {
            let address = buffer.address;
            owned.buffers.push(buffer);
            address
        };
        let names = keep(pool.take(driver, 8 * words.len(), what)?);
        driver.upload(&words, names, what)?;
        let mut zeros = |words: usize| Ok(keep(pool.take_zeroed(driver, 8 * words, what)?));
        let [exchange, shared] = [zeros(2 * kept.half)?, zeros(kept.shared)?];
        let [table, params] = kept.tables.addresses;
        let [windows, columns, values] = kept.entries.addresses;
        jit.args.addresses =
            [0, 0, table, names, 0, 0, 0, exchange, shared, windows, params, columns, values];
        Ok(jit)
    }
}
