//! Kernels written for programs: what plans share with those of the same program or the same matrices after them.
use crate::compiler::Code;
use crate::driver::Address;
use crate::memory::Buffer;
use crate::near::{Near, Planning, names};
use crate::prepared::{Owned, Workshop};
use bytemuck::cast_slice;
use lacuna_core::encode::Encoded;
use lacuna_core::{Result, Scalar};
use lacuna_generate::{Laid, Staged};
use std::sync::Arc;

/// Buffers on the device that several plans may use: given back once nobody holds this any more.
#[derive(Clone)]
pub(crate) struct Hold<const N: usize> {
    _alive: Arc<()>,
    pub(crate) addresses: [Address; N],
}

/// Windows, columns and values of laid out matrices.
pub(crate) type Entries = Hold<3>;

/// A kernel written for a program, and what of it is the same for every plan of that program.
#[derive(Clone)]
pub(crate) struct Written {
    pub(crate) near: Near,
    /// Words of half the exchange, and of the buffer of operands.
    pub(crate) half: usize,
    pub(crate) shared: usize,
    pub(crate) entries: Entries,
    /// The table, and the numbers of blocks.
    pub(crate) tables: Hold<2>,
}

impl Workshop<'_> {
    /// The kernel generated for a program, where there is one; that of the same program before where it is still there. The
    /// entries of its matrices are on the device from the first plan on, for the one that finds the kernel compiled.
    pub(crate) fn written<T: Scalar>(
        &mut self,
        name: &str,
        encoded: &Encoded<T>,
    ) -> Result<Option<Code<Written>>> {
        let wanted = self.mode as u32;
        if let Some(written) = self.shelf.program(encoded, wanted) {
            return Ok(Some(Code::Ready(written)));
        }
        let Some((layout, laid)) = self.planning().layout(encoded, name)? else { return Ok(None) };
        let entries = match laid {
            Laid::Kept(entries) => entries,
            Laid::Anew(Staged { windows, columns, values }, key, way) => {
                let parts = [cast_slice(&windows), cast_slice(&columns), cast_slice(&values)];
                let entries = self.hold(parts, "the entries of matrices")?;
                self.shelf.keep(key, way, entries.clone());
                entries
            }
        };
        let near = match self.planning().kernel(encoded, &layout)? {
            None => return Ok(None),
            Some(Code::Compiling(job)) => return Ok(Some(Code::Compiling(job))),
            Some(Code::Ready(near)) => near,
        };
        let params = cast_slice(&layout.written.params);
        let tables = self.hold([cast_slice(&encoded.words), params], "the tables of a program")?;
        let written = Written { near, half: layout.half, shared: layout.shared, entries, tables };
        self.shelf.keep_program(encoded, wanted, written.clone());
        Ok(Some(Code::Ready(written)))
    }

    fn planning(&mut self) -> Planning<'_> {
        let Workshop { driver, store, shelf, mode, compile, .. } = self;
        Planning { driver, store, shelf, mode: *mode, compile: *compile }
    }

    /// Buffers with these bytes, until nobody holds them.
    fn hold<const N: usize>(&mut self, parts: [&[u8]; N], what: &str) -> Result<Hold<N>> {
        let alive = Arc::new(());
        let (mut owned, mut addresses) = (Owned { alive: alive.clone(), buffers: Vec::new() }, [0; N]);
        let Workshop { driver, store, .. } = self;
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
        // Buffers that nobody holds are swept up.
        self.owned.push(owned);
        filled.map(|()| Hold { _alive: alive, addresses })
    }

    /// The buffers of a plan of a written kernel.
    pub(crate) fn build_near<T: Scalar>(
        &mut self,
        encoded: &Encoded<T>,
        name: &str,
        written: &Written,
        owned: &mut Owned,
    ) -> Result<Near> {
        let mut near = written.near;
        let words = names(self.store, encoded, name)?;
        let what = "the buffers of a program";
        let Workshop { driver, store, .. } = self;
        let (driver, pool) = (&**driver, &mut store.pool);
        let mut keep = |buffer: Buffer| {
            let address = buffer.address;
            owned.buffers.push(buffer);
            address
        };
        let names = keep(pool.take(driver, 8 * words.len(), what)?);
        driver.upload(&words, names, what)?;
        let mut zeros = |words: usize| Ok(keep(pool.take_zeroed(driver, 8 * words, what)?));
        let [exchange, shared] = [zeros(2 * written.half)?, zeros(written.shared)?];
        let [table, params] = written.tables.addresses;
        let [windows, columns, values] = written.entries.addresses;
        near.args.addresses =
            [0, 0, table, names, 0, 0, 0, exchange, shared, windows, params, columns, values];
        Ok(near)
    }
}
