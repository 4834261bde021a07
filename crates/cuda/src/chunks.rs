//! Instructions for the lanes of a warp, one each: what `evaluate.cuh` runs.
use lacuna_core::encode::*;
use std::collections::HashMap;

/// Instructions of a chunk, at the most: the lanes of a warp.
const LANES: usize = 32;
/// Steps of a chunk, at the most: what its words have bits for.
const STEPS: usize = 12;
/// The step of an instruction that has none.
const NO_STEP: u32 = 0xff;
/// `FROM_LANE` of `program.cuh`.
const FROM_LANE: u32 = 1 << 31;
/// Cycles of a step, about: simple instructions, divisions, roots.
const COSTS: [u32; 3] = [60, 190, 220];

/// What an instruction reads: a cell as it was before the chunk, or what another lane has computed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Operand {
    Cell(u32),
    Lane(usize),
}

#[derive(Clone, Copy, Debug)]
struct Instruction {
    code: u32,
    /// The test and whether it is soft, as its first word holds them.
    test: u32,
    /// The cell written, or the reason.
    second: u32,
    writes: bool,
    operands: [Option<Operand>; 2],
}

/// Instructions evaluated together, and one evaluated alone after them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chunk {
    instructions: Vec<Instruction>,
    /// The place, in instructions, of one that a lane does alone.
    pub(crate) special: Option<u32>,
    /// The lane that writes a cell.
    written: HashMap<u32, usize>,
    counts: bool,
}

/// The chunks of a list of instructions, or `None` where they are evaluated one by one.
pub(crate) fn chunks(code: &[u32]) -> Option<Vec<Chunk>> {
    let mut done = Vec::new();
    let mut open = Chunk::default();
    for (place, w) in code.chunks(INSTR_WORDS as usize).enumerate() {
        if matches!(w[INSTR_CODE as usize], CODE_ROTATE | CODE_CONFIRM | CODE_BACK_SUBSTITUTE) {
            open.special = Some(place as u32);
            done.push(std::mem::take(&mut open));
            continue;
        }
        if !open.take(w)? {
            done.push(std::mem::take(&mut open));
            open.take(w)?;
        }
    }
    if !open.instructions.is_empty() {
        done.push(open);
    }
    Some(done)
}

/// 0 for a simple instruction, 1 for a division, 2 for a root.
fn kind(code: u32) -> usize {
    match code {
        CODE_DIV => 1,
        CODE_SQRT => 2,
        _ => 0,
    }
}

impl Chunk {
    /// Adds an instruction; `Some(false)` where it has to go to the next chunk, `None` where it fits none.
    fn take(&mut self, w: &[u32]) -> Option<bool> {
        let (code, dst, a, b) =
            (w[INSTR_CODE as usize], w[INSTR_DST as usize], w[INSTR_A as usize], w[INSTR_B as usize]);
        let (operands, writes, test, second) = match code {
            CODE_COPY | CODE_NEG | CODE_CONJ | CODE_SQRT => ([Some(a), None], true, 0, dst),
            CODE_ADD | CODE_SUB | CODE_MUL | CODE_DIV | CODE_MAX => ([Some(a), Some(b)], true, 0, dst),
            CODE_STOP | CODE_LEAVE => {
                let soft = if code == CODE_STOP { w[INSTR_D as usize] << 24 } else { 0 };
                let operands = match dst {
                    TEST_ALWAYS => [None, None],
                    TEST_LESS_EQUAL | TEST_GREATER => [Some(a), Some(b)],
                    _ => [Some(a), None],
                };
                (operands, false, dst << 16 | soft, w[INSTR_C as usize])
            }
            CODE_COUNT => ([Some(dst), None], false, 0, 0),
            _ => return None,
        };
        let again = writes && self.written.contains_key(&dst);
        if self.instructions.len() == LANES || again || (code == CODE_COUNT && self.counts) {
            return Some(false);
        }
        let from =
            |cell: u32| self.written.get(&cell).map_or(Operand::Cell(cell), |lane| Operand::Lane(*lane));
        let operands = operands.map(|cell| cell.map(from));
        self.instructions.push(Instruction { code, test, second, writes, operands });
        if writes {
            self.written.insert(dst, self.instructions.len() - 1);
        }
        if self.steps().len() > STEPS {
            self.instructions.pop();
            if writes {
                self.written.remove(&dst);
            }
            return Some(false);
        }
        self.counts |= code == CODE_COUNT;
        Some(true)
    }

    /// The lanes that an instruction reads of.
    fn needs(&self, lane: usize) -> impl Iterator<Item = usize> {
        self.instructions[lane].operands.into_iter().flatten().filter_map(|operand| match operand {
            Operand::Lane(lane) => Some(lane),
            Operand::Cell(_) => None,
        })
    }

    /// The lanes that compute in each step, all of one kind: the longest way to the end first.
    fn steps(&self) -> Vec<Vec<usize>> {
        let count = self.instructions.len();
        let mut way: Vec<u32> = self.instructions.iter().map(|i| COSTS[kind(i.code)]).collect();
        for lane in (0..count).rev() {
            for need in self.needs(lane) {
                way[need] = way[need].max(way[lane] + COSTS[kind(self.instructions[need].code)]);
            }
        }
        let mut left: Vec<usize> = (0..count).filter(|lane| self.instructions[*lane].writes).collect();
        let mut steps = Vec::new();
        while !left.is_empty() {
            let ready: Vec<usize> =
                left.iter().copied().filter(|lane| self.needs(*lane).all(|n| !left.contains(&n))).collect();
            let Some(first) = ready.iter().max_by_key(|lane| (way[**lane], std::cmp::Reverse(**lane))) else {
                break;
            };
            let of = kind(self.instructions[*first].code);
            let step: Vec<usize> =
                ready.into_iter().filter(|lane| kind(self.instructions[*lane].code) == of).collect();
            left.retain(|lane| !step.contains(lane));
            steps.push(step);
        }
        steps
    }

    /// How many instructions, the word of its steps, and the words of the instructions, four each. `place` is where a cell is
    /// in bytes; `one` where a 1 is.
    pub(crate) fn words(&self, place: impl Fn(u32) -> u32, one: u32) -> (u32, u32, Vec<[u32; 4]>) {
        let steps = self.steps();
        let word = steps.iter().enumerate().fold(steps.len() as u32, |word, (step, lanes)| {
            word | (kind(self.instructions[lanes[0]].code) as u32) << (8 + 2 * step)
        });
        let of = |operand: Option<Operand>| match operand {
            None => one,
            Some(Operand::Cell(cell)) => place(cell),
            Some(Operand::Lane(lane)) => FROM_LANE | (lane as u32) << 26 | one,
        };
        let instructions = self.instructions.iter().enumerate().map(|(lane, i)| {
            let step =
                steps.iter().position(|lanes| lanes.contains(&lane)).map_or(NO_STEP, |step| step as u32);
            let second = if i.writes { place(i.second) } else { i.second };
            [i.code | step << 8 | i.test, second, of(i.operands[0]), of(i.operands[1])]
        });
        (self.instructions.len() as u32, word, instructions.collect())
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
            instr(CODE_NEG, 7, 3, 0),
        ];
        let chunks = chunks(&code.concat()).unwrap();
        assert_eq!(chunks.len(), 1);
        let (count, steps, words) = chunks[0].words(|cell| 8 * cell, 80);
        let of = |lane: u32| FROM_LANE | lane << 26 | 80;
        let expected = [
            [CODE_DIV, 40, 8, 16],
            [CODE_MUL | 1 << 8, 48, of(0), 8],
            [CODE_STOP | NO_STEP << 8 | TEST_NOT_POSITIVE << 16, 0, 16, 80],
            [CODE_COPY | 2 << 8, 8, of(1), 80],
            [CODE_NEG | 1 << 8, 56, 24, 80],
        ];
        assert_eq!(words, expected);
        // A division, then simple instructions twice.
        assert_eq!((count, steps), (5, 3 | 1 << 8));
    }

    #[test]
    fn what_is_written_twice_begins_a_new_chunk() {
        let code = [instr(CODE_NEG, 5, 1, 0), instr(CODE_NEG, 5, 2, 0), instr(CODE_NEG, 6, 5, 0)];
        let chunks = chunks(&code.concat()).unwrap();
        assert_eq!(chunks.iter().map(|c| c.instructions.len()).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(chunks[1].instructions[1].operands[0], Some(Operand::Lane(0)));
    }

    #[test]
    fn a_chain_too_long_for_one_chunk_goes_on_in_the_next() {
        let code: Vec<_> = (0..20).map(|i| instr(CODE_NEG, i + 1, i, 0)).collect();
        let chunks = chunks(&code.concat()).unwrap();
        assert_eq!(chunks.iter().map(|c| c.instructions.len()).collect::<Vec<_>>(), [12, 8]);
        assert_eq!(chunks[1].instructions[0].operands[0], Some(Operand::Cell(12)));
    }

    #[test]
    fn a_confirmation_is_evaluated_by_one() {
        let chunks = chunks(&[instr(CODE_NEG, 5, 1, 0), instr(CODE_CONFIRM, 1, 2, 3)].concat()).unwrap();
        assert_eq!((chunks.len(), chunks[0].special), (1, Some(1)));
    }
}
