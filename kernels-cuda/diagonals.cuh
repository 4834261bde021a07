// How diagonals lie: the value at row 64 s + r on diagonal k of d is at (s d + k) 64 + r, so that a warp reads whole lines.
#pragma once
#include "sweep.cuh"

// Rows of a diagonal that lie together.
#define DIA_ROWS 64u

// The place of a row on the first diagonal.
LACUNA_FN u64 first_of_row(u32 row, u32 diagonals) { return u64(row / DIA_ROWS) * diagonals * DIA_ROWS + row % DIA_ROWS; }
