//! The whole loop in one work-group of one work-item, which takes a segment at a time: the fastest way for
//! small systems on CPUs.
use crate::Mode;
use crate::backend::OpenCl;
use crate::compiler::{self, SEGMENT};
use crate::driver::Arg;
use crate::plan::Launch;
use lacuna_engine::Result;
use lacuna_engine::encode::{self, Encoded};

/// Maximum rows for which it is faster.
const ROWS: usize = 4096;
/// Index of an argument that changes from launch to launch.
pub(crate) const PROGRAM_BUDGET: u32 = 10;

impl OpenCl {
    /// The launch of a whole program; `None` if it runs by launches, as with more cells than local memory holds.
    pub(crate) fn one_group(&mut self, encoded: &Encoded, operation: &str) -> Result<Option<Launch>> {
        let n = encoded.n as usize;
        let wanted = match self.options.mode {
            Mode::OneGroup => n <= SEGMENT * SEGMENT * SEGMENT,
            // A program without a loop is a call from the host: one or two launches.
            Mode::Auto => self.segments_each && n <= ROWS && !encoded.sections[2].is_empty(),
            Mode::Jit | Mode::Launches => false,
        };
        if !wanted {
            return Ok(None);
        }
        let (kind, cells) = (encoded.kind, encoded.cells.len());
        let size = kind.size();
        if compiler::work(kind, SEGMENT) + (cells + SEGMENT) * size > self.local_budget() {
            return Ok(None);
        }
        let mut formats = compiler::variant(encoded);
        for a in &encoded.matrices {
            formats |= 1 << self.store.matrix_words(*a, operation)?[0];
        }
        self.build(kind, &[("advance", compiler::variant(encoded)), ("program", formats)])?;
        let mut kernel = self.kernel(kind, ("program", formats))?;
        let args = [
            Arg::Word(encoded.cells.start),
            Arg::Word(cells as u32),
            Arg::Word(0),
            Arg::Local(compiler::work(kind, SEGMENT)),
            Arg::Local(SEGMENT * size),
            Arg::Local(cells * size),
            Arg::Local(8 * encode::CONTROL_WORDS as usize),
        ];
        for (i, arg) in args.iter().enumerate() {
            kernel.set(8 + i as u32, arg).map_err(self.driver.fail(operation))?;
        }
        Ok(Some(Launch { kernel, groups: 1, size: 1 }))
    }
}
