//! Instructions for the lanes of a warp, one each: what `evaluate.cuh` runs.
use lacuna_core::encode::*;
use std::collections::HashMap;

/// Instructions of a chunk, at the most: the lanes of a warp.
const LANES: usize = 32;
/// Levels of a chunk, at the most: what its words have bits for.
const LEVELS: u32 = 12;
/// `FROM_LANE` of `program.cuh`.
const FROM_LANE: u32 = 1 << 31;

/// Instructions evaluated together, and one evaluated alone after them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Chunk {
    /// The instructions, four words each.
    pub(crate) instructions: Vec<[u32; 4]>,
    /// Levels; above 8 bits, which of them divide; above 20, which take roots.
    pub(crate) levels: u32,
    /// The place, in instructions, of one that a lane does alone.
    pub(crate) special: Option<u32>,
    /// The lane that writes a cell, and its level.
    written: HashMap<u32, (u32, u32)>,
    counts: bool,
}

/// The chunks of a list of instructions, or `None` where they are evaluated one by one.
pub(crate) fn chunks(code: &[u32]) -> Option<Vec<Chunk>> {
    let mut done = Vec::new();
    let mut open = Chunk::default();
    for (place, w) in code.chunks(INSTR_WORDS as usize).enumerate() {
        if w[INSTR_CODE as usize] == CODE_ROTATE {
            open.special = Some(place as u32);
            done.push(std::mem::take(&mut open));
            continue;
        }
        if !open.take(w)? {
            done.push(std::mem::take(&mut open));
            if !open.take(w)? {
                return None;
            }
        }
    }
    if !open.instructions.is_empty() {
        done.push(open);
    }
    Some(done)
}

impl Chunk {
    /// Adds an instruction; `Some(false)` where it has to go to the next chunk, `None` where it fits none.
    fn take(&mut self, w: &[u32]) -> Option<bool> {
        let (code, dst, a, b) =
            (w[INSTR_CODE as usize], w[INSTR_DST as usize], w[INSTR_A as usize], w[INSTR_B as usize]);
        let (operands, writes, packed, second) = match code {
            CODE_COPY | CODE_NEG | CODE_CONJ | CODE_SQRT => ([a, a], Some(dst), code, dst),
            CODE_ADD | CODE_SUB | CODE_MUL | CODE_DIV | CODE_MAX => ([a, b], Some(dst), code, dst),
            CODE_STOP | CODE_LEAVE => {
                let soft = if code == CODE_STOP { w[INSTR_D as usize] << 24 } else { 0 };
                let operands = match dst {
                    // No cell is read: any operand that is there will do.
                    TEST_ALWAYS => return self.always(code | dst << 16 | soft, w[INSTR_C as usize]),
                    TEST_LESS_EQUAL | TEST_GREATER => [a, b],
                    _ => [a, a],
                };
                (operands, None, code | dst << 16 | soft, w[INSTR_C as usize])
            }
            CODE_COUNT => ([dst, dst], None, code, 0),
            _ => return None,
        };
        let found = operands.map(|cell| self.written.get(&cell));
        let level = if writes.is_some() {
            found.iter().flatten().map(|(_, level)| level + 1).max().unwrap_or(0)
        } else {
            0
        };
        let full = self.instructions.len() == LANES || level >= LEVELS;
        let again = writes.is_some_and(|cell| self.written.contains_key(&cell));
        if full || again || (code == CODE_COUNT && self.counts) {
            return Some(false);
        }
        let [z, w] = [0, 1].map(|i| found[i].map_or(operands[i], |(lane, _)| FROM_LANE | lane));
        if let Some(cell) = writes {
            self.written.insert(cell, (self.instructions.len() as u32, level));
            self.levels = (self.levels & !0xff) | (self.levels & 0xff).max(level + 1);
            self.levels |= match code {
                CODE_DIV => 1 << (8 + level),
                CODE_SQRT => 1 << (20 + level),
                _ => 0,
            };
        }
        self.counts |= code == CODE_COUNT;
        self.instructions.push([packed | level << 8, second, z, w]);
        Some(true)
    }

    fn always(&mut self, packed: u32, second: u32) -> Option<bool> {
        if self.instructions.len() == LANES {
            return Some(false);
        }
        self.instructions.push([packed, second, FROM_LANE, FROM_LANE]);
        Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instr(code: u32, dst: u32, a: u32, b: u32) -> [u32; INSTR_WORDS as usize] {
        let mut w = [0; INSTR_WORDS as usize];
        (w[0], w[1], w[2], w[3]) = (code, dst, a, b);
        w
    }

    #[test]
    fn operands_come_from_the_lanes_that_compute_them() {
        let code = [
            instr(CODE_DIV, 5, 1, 2),
            instr(CODE_MUL, 6, 5, 1),
            instr(CODE_STOP, TEST_NOT_POSITIVE, 2, 0),
            instr(CODE_COPY, 1, 6, 0),
        ];
        let chunks = chunks(&code.concat()).unwrap();
        assert_eq!(chunks.len(), 1);
        let of = |lane: u32| FROM_LANE | lane;
        let expected = [
            [CODE_DIV, 5, 1, 2],
            [CODE_MUL | 1 << 8, 6, of(0), 1],
            [CODE_STOP | TEST_NOT_POSITIVE << 16, 0, 2, 2],
            [CODE_COPY | 2 << 8, 1, of(1), of(1)],
        ];
        assert_eq!(chunks[0].instructions, expected);
        assert_eq!(chunks[0].levels, 3 | 1 << 8);
    }

    #[test]
    fn what_is_written_twice_begins_a_new_chunk() {
        let code = [instr(CODE_NEG, 5, 1, 0), instr(CODE_NEG, 5, 2, 0), instr(CODE_NEG, 6, 5, 0)];
        let chunks = chunks(&code.concat()).unwrap();
        assert_eq!(chunks.iter().map(|c| c.instructions.len()).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(chunks[1].instructions[1][2], FROM_LANE);
    }

    #[test]
    fn a_confirmation_is_evaluated_by_one() {
        assert_eq!(chunks(&instr(CODE_CONFIRM, 1, 2, 3)), None);
    }
}
