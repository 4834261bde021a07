// Storage of diagonals: the value at row 64 s + r on diagonal k of d is at start[k] + s step + r, where the table of a
// matrix holds d offsets, d starts and the step. This covers both orders of `crates/formats/src/storage/dia.rs`: loads
// of a warp are coalesced, or nearly so.
#pragma once
#include "sweep.cuh"

// Rows of a diagonal that are contiguous.
#define DIA_ROWS 64u

// The place of a row, relative to the start of any diagonal.
LACUNA_FN u64 place_of_row(u32 row, const int *__restrict__ table, u32 diagonals) {
    return u64(row / DIA_ROWS) * u32(__ldg(table + 2 * diagonals)) + row % DIA_ROWS;
}
