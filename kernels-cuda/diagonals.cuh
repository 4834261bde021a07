// How diagonals lie: the value at row 64 s + r on diagonal k of d is at start[k] + s step + r, where the table of a matrix has d
// offsets, d starts and the step. Both orders of `crates/formats/src/storage/dia.rs`: a warp reads whole lines, or nearly so.
#pragma once
#include "sweep.cuh"

// Rows of a diagonal that lie together.
#define DIA_ROWS 64u

// The place of a row, as if every diagonal began with the first place.
LACUNA_FN u64 place_of_row(u32 row, const int *__restrict__ table, u32 diagonals) {
    return u64(row / DIA_ROWS) * u32(__ldg(table + 2 * diagonals)) + row % DIA_ROWS;
}
