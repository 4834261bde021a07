//! Instructions as words.
use super::words::*;
use crate::expr::cells::{Binary, Compare, HessenbergCells, Instr, Unary};

/// An instruction over runs of cells, expanded to one per cell.
pub(super) fn one_by_one(instr: &Instr) -> impl Iterator<Item = Instr> + use<> {
    let instr = *instr;
    let count = if let Instr::AddCells { count, .. } = instr { count } else { 1 };
    (0..count).map(move |i| match instr {
        Instr::AddCells { dst, a, .. } => {
            Instr::Binary { op: Binary::Add, dst: dst + i, a: dst + i, b: a + i }
        }
        instr => instr,
    })
}

/// The words of an instruction.
pub(super) fn instr(instr: Instr) -> [u32; INSTR_WORDS as usize] {
    let test = |test: Compare| match test {
        Compare::Always => TEST_ALWAYS,
        Compare::LessEqual => TEST_LESS_EQUAL,
        Compare::Greater => TEST_GREATER,
        Compare::NotPositive => TEST_NOT_POSITIVE,
        Compare::NotFinite => TEST_NOT_FINITE,
        Compare::Zero => TEST_ZERO,
    };
    let hessenberg = |code: u32, at: HessenbergCells, j: u32, rr: u32| {
        [code, at.m, at.h, at.rotations, at.g, at.y, at.used, j, rr, 0, 0, 0]
    };
    let words = |code: u32, operands: [u32; 5]| {
        let mut words = [0; INSTR_WORDS as usize];
        words[0] = code;
        words[1..6].copy_from_slice(&operands);
        words
    };
    match instr {
        Instr::Unary { op, dst, a } => {
            let code = match op {
                Unary::Copy => CODE_COPY,
                Unary::Neg => CODE_NEG,
                Unary::Conj => CODE_CONJ,
                Unary::Sqrt => CODE_SQRT,
            };
            words(code, [dst, a, 0, 0, 0])
        }
        Instr::Binary { op, dst, a, b } => {
            let code = match op {
                Binary::Add => CODE_ADD,
                Binary::Sub => CODE_SUB,
                Binary::Mul => CODE_MUL,
                Binary::Div => CODE_DIV,
                Binary::Max => CODE_MAX,
            };
            words(code, [dst, a, b, 0, 0])
        }
        Instr::Stop { test: t, a, b, reason, soft } => words(CODE_STOP, [test(t), a, b, reason, soft.into()]),
        Instr::Leave { test: t, a, b } => words(CODE_LEAVE, [test(t), a, b, 0, 0]),
        Instr::OnlyIf { test: t, a, b } => words(CODE_ONLY_IF, [test(t), a, b, 0, 0]),
        Instr::Count { rr } => words(CODE_COUNT, [rr, 0, 0, 0, 0]),
        Instr::Confirm { rr, target, last, shrink } => words(CODE_CONFIRM, [rr, target, last, shrink, 0]),
        Instr::Rotate { at, j, rr } => hessenberg(CODE_ROTATE, at, j, rr),
        Instr::BackSubstitute { at } => hessenberg(CODE_BACK_SUBSTITUTE, at, 0, 0),
        // Expanded earlier.
        Instr::AddCells { .. } => unreachable!(),
    }
}
