//! Kernels generated for programs: what plans share with later plans of the same program or the same
//! matrices.
use crate::algebra::Algebra;
use crate::compiler::Code;
use crate::jit::{Jit, Planning, names};
use crate::memory::Buffer;
use crate::plan::Planner;
use bytemuck::cast_slice;
use lacuna_engine::encode::Encoded;
use lacuna_engine::{Matrix, Result};
use lacuna_gpu::Repack;
use lacuna_gpu::algebra::lay_out;
use std::sync::Arc;

/// Windows, columns and values of repacked matrices.
pub(crate) type RepackedBuffers = Arc<[Arc<Buffer>]>;

/// A kernel generated for a program, and the data shared by all plans of that program.
#[derive(Clone)]
pub(crate) struct Kept {
    pub(crate) jit: Jit,
    /// Words of half the exchange, and of the buffer of operands.
    half: usize,
    shared: usize,
    entries: RepackedBuffers,
    /// The table, and the parameters of the blocks.
    tables: RepackedBuffers,
}

impl Planner<'_> {
    /// The kernel generated for a program, if there is one, from the cache if possible. The entries of its
    /// matrices go to the device once it is compiled.
    pub(crate) fn jit(&mut self, name: &str, encoded: &Encoded) -> Result<Option<Code<Kept>>> {
        let mode = self.wanted.mode as u32;
        if let Some(kept) = self.cache.program(encoded, mode) {
            return Ok(Some(Code::Ready(kept)));
        }
        let Planner { driver, store, cache, wanted } = self;
        let store = &**store;
        let mut planning = Planning { driver, store, cache, wanted: *wanted };
        let (layout, jit, repack) = match planning.jit(encoded, name)? {
            None => return Ok(None),
            Some(Code::Compiling(job)) => return Ok(Some(Code::Compiling(job))),
            Some(Code::Ready(made)) => made,
        };
        let what = "the entries of matrices";
        let entries = match repack {
            Repack::Cached(entries) => entries,
            Repack::New(repacked, key, way) => {
                let columns = cast_slice(&repacked.columns);
                let parts = [cast_slice(&repacked.windows), columns, cast_slice(&repacked.values)];
                let entries = self.uploaded(&parts, what)?;
                self.cache.keep(key, way, entries.clone());
                entries
            }
            Repack::Unfilled(slicer, key, way) => {
                let arrays_of = |a: &Matrix| store.arrays_of(*a, &["csr", "bcsr"], what);
                let stored: Vec<_> = encoded.matrices.iter().map(arrays_of).collect::<Result<_>>()?;
                let workspace = store.pool.clone();
                let mut dev = Algebra { driver: self.driver, kind: encoded.kind, workspace };
                let Some(laid) = lay_out(&mut dev, slicer, &stored)? else { return Ok(None) };
                let entries: RepackedBuffers = laid.into();
                self.cache.keep(key, way, entries.clone());
                entries
            }
        };
        let params = cast_slice(&layout.generated.params);
        let tables = self.uploaded(&[cast_slice(&encoded.words), params], "the tables of a program")?;
        let kept = Kept { jit, half: layout.half, shared: layout.shared, entries, tables };
        self.cache.keep_program(encoded, mode, kept.clone());
        Ok(Some(Code::Ready(kept)))
    }

    /// Buffers that begin with these bytes.
    fn uploaded(&self, parts: &[&[u8]], what: &str) -> Result<RepackedBuffers> {
        parts.iter().map(|bytes| self.store.pool.filled(self.driver, bytes, what).map(Arc::new)).collect()
    }

    /// The launch of a plan of a generated kernel, with its buffers.
    pub(crate) fn build_jit(
        &self,
        encoded: &Encoded,
        name: &str,
        kept: &Kept,
        buffers: &mut Vec<Buffer>,
    ) -> Result<Jit> {
        let mut jit = kept.jit;
        let (driver, pool) = (&*self.driver, &self.store.pool);
        let mut keep = |buffer: Buffer| {
            let address = buffer.address;
            buffers.push(buffer);
            address
        };
        let what = "the buffers of a program";
        let words = names(self.store, encoded, name)?;
        let names = keep(pool.filled(driver, cast_slice(&words), what)?);
        let mut zeros = |words: usize| pool.zeroed(driver, 8 * words, what).map(&mut keep);
        let (exchange, shared) = (zeros(2 * kept.half)?, zeros(kept.shared)?);
        let address = |buffers: &[Arc<Buffer>], i: usize| buffers.get(i).map_or(0, |buffer| buffer.address);
        let [table, params] = [0, 1].map(|i| address(&kept.tables, i));
        let [windows, columns, values] = [0, 1, 2].map(|i| address(&kept.entries, i));
        jit.args.addresses =
            [0, 0, table, names, 0, 0, 0, exchange, shared, windows, params, columns, values];
        Ok(jit)
    }
}
