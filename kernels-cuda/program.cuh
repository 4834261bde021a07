// The table of a program that runs in one launch, and what the block that runs it knows.
//
// Mirrors crates/core/src/encode.rs (through `layout.h`) for instructions that are evaluated one by one, and
// crates/cuda/src/whole.rs for the rest. The host writes indices of vectors; the block replaces them by addresses, in shared
// memory where the vector's share is there, else in global memory, once at the start.
#pragma once
#include "sweep.cuh"
#include "words.cuh"

#define VECTOR_WRITTEN 1u // differs from global memory at the end
#define VECTOR_SHARED 2u  // read across blocks: kept as words of value and tag too

#define CHANGED_BYTES 1024u
#define AHEAD 8u // entries of a row's lane that a product reads at once

struct ProgramArgs {
    u64 table;    // what each block keeps in shared memory
    u64 words;    // the program as encode.rs writes it, where that is not in the table
    u64 cells, history, exchange, result, halo;
    u64 passes;
    u64 control[LACUNA_CONTROL_WORDS];
    u32 table_words; // a multiple of 4
    u32 at_words;    // words of the table, or NONE
    u32 first[3];
    u32 at_ops, at_vectors, at_matrices, at_terms;
    u32 ops, vectors, matrices, terms;
    u32 cell_first, cell_count;
    u32 n, segments, groups, rows; // rows: of a block, at the most
    u32 exchange_words;            // 16-byte words of one half
    u32 at_cells, at_sums, at_halo; // bytes of shared memory; at_halo NONE: at `halo`
    u32 halo_most;
    u32 at_row_ptr, at_col_idx, at_values, at_list, at_groups; // bytes: the rows of matrix 0; 0 where they are not staged
    u32 short_history;           // numbers that `result` has room for
    u32 result_cells;            // whether the cells go to `result` too
    u32 changed_first, changed_count; // cells the host has set
    u32 pad[3];
    alignas(16) u64 changed[CHANGED_BYTES / 8];
};

// What `result` holds, in bytes: the control block, a short history, the cells.
#define RESULT_HISTORY (LACUNA_CONTROL_WORDS * 8u)
#define RESULT_CELLS (RESULT_HISTORY + 2048u)

// An operation.
struct alignas(16) HotOp {
    LACUNA_FN u32 what() const { return kind & 0xffu; }
    LACUNA_FN u32 section() const { return kind >> 8; }

    u32 kind, terms, at_terms, dots; // kind: above 8 bits the section
    u32 at_dots, x, y, matrix;
    u32 reads, writes; // vectors read across blocks, vectors written as words: a bit each
    // Chunks: those after the sweep and before that of the next operation; above 16 bits, the former alone. NONE: one by one.
    u32 at_plan, chunks;
    u32 next, columns, at_columns, h;
};
#define TERMS_PLAIN 0x80000000u // of `terms`: real numbers, no factors, no update without terms
#define TERM_WORDS 256u         // of a term's flags: `factor` is where words go
#define NEXT_WRAPS 0x80000000u // of `next`: a pass through `each` ends
#define H_ADDS 0x80000000u     // of `h`

// A vector. `at` and `global` are of the block's first row.
struct alignas(16) VectorPlace {
    u64 at, global;
    u64 words; // of row 0
    u64 tag;   // of the values last written as words
    u32 flags, home; // home: bytes of shared memory, or NONE
    u32 pad[2];
};

// A matrix. The host writes addresses of whole arrays; those here are of the block.
struct alignas(16) MatrixPlace {
    u64 row_ptr; // for the lengths of rows
    u64 col_idx, values, groups; // the entries as halo.rs lays them out, and where those of the rows of a warp start
    u64 list;    // rows of x that others keep
    u64 offsets; // where each block's list starts; 0 where there is one block
    u32 lanes, count;
};

// A term of an update: see sweep.cuh; the flags hold the vector written above 16 bits. `factor`: in a plain operation where the
// words of the block's first row of the vector written are.
struct alignas(16) HotTerm {
    u32 flags, cell; // cell: bytes from the first
    u64 vector;
    u64 to, factor;
};

// Instructions evaluated together by the lanes of a warp, one each: words where they start, how many, steps; above 8 bits of
// `steps` two bits for each step: whether it divides, whether it takes roots. Then what one lane does alone: the words of an
// instruction, or NONE.
struct alignas(16) Chunk {
    u32 at, count, steps, special;
};
// An instruction of a chunk: x: its code, above 8 bits its step, above 16 the test, above 24 whether it is soft; y: where the
// cell it writes is, in bytes, or the reason; z and w: the operands: where a cell is, or, FROM_LANE set, a lane above 26 bits.
// Tests come after all steps.
#define FROM_LANE 0x80000000u
#define CELL_BYTES 0x03ffffffu

template <typename T> struct IsComplex { static const bool value = true; };
template <> struct IsComplex<float> { static const bool value = false; };
template <> struct IsComplex<double> { static const bool value = false; };

// What the block that runs a program knows.
template <typename T> struct Block {
    const ProgramArgs &a;
    unsigned char *memory;
    u32 *table;
    T *cells; // as if all cells were there
    T *sums;
    u64 *control;
    u32 first, rows, from, mine; // rows and segments of this block
    u32 tid, threads;
    bool one, near; // near: matrix 0 and halos are in shared memory

    LACUNA_FN VectorPlace &vector(u32 v) const { return ((VectorPlace *)(table + a.at_vectors))[v]; }
    LACUNA_FN T *at(u32 v) const { return (T *)vector(v).at; }
    LACUNA_FN const MatrixPlace &matrix(u32 m) const { return ((const MatrixPlace *)(table + a.at_matrices))[m]; }
    // Row `i` of a vector other blocks read, for them.
    LACUNA_FN void publish(VectorPlace &p, u32 i, T value, u64 tag) const {
        put_number(p.words, first + i, value, tag);
        if (i == 0) p.tag = tag;
    }
    LACUNA_FN T *halo() const {
        return a.at_halo != LACUNA_NONE ? (T *)(memory + a.at_halo) : (T *)a.halo + u64(blockIdx.x) * a.halo_most;
    }
};
