// x <- A^-1 b with a triangular matrix: the places of one level, or several levels in sequence.
//
// Formula: x[i] = (b[i] - a[k] x[col[k]] - ...) r, one fused multiply-add for each entry of the row in order. The last
// entry of a place has the row i as its column and r, the reciprocal of the diagonal entry, as its value.
// Bytes moved per row: an offset, its columns and values, b and x once, x of the rows it depends on (from cache if they
// are near).
// Launch shape: `tri_solve_level`: one work-item for each place, any number of work-groups. `tri_solve_levels`: one
// work-group with a barrier between levels.
// Assumes: `slot_cap` to `local_capacity` are places of one level for the first kernel, levels for the second. Vectors
// are not narrow. The instructions of the operation run afterwards (see `sweep`).

static inline void solve_place(__global const uint *restrict row_ptr, __global const uint *restrict columns,
    __global const number *restrict values, SOURCE b, TARGET x, uint place) {
    uint k = row_ptr[place];
    const uint end = row_ptr[place + 1] - 1, row = columns[end];
    number sum = GET(b, row);
    for (; k < end; k++) {
        sum = multiply_add(-values[k], GET(x, columns[k]), sum);
    }
    PUT(x, row, times(sum, values[end]));
}

#define BEGIN_SOLVE() \
    BEGIN_OPERATION(); \
    __global const ulong *m = MATRIX(place, OP(place, op, LACUNA_OP_MATRIX)); \
    __global const uint *restrict row_ptr = (__global const uint *)(fixed + m[MATRIX_ARGUMENTS]); \
    __global const uint *restrict columns = (__global const uint *)(fixed + m[MATRIX_ARGUMENTS + 1]); \
    __global const number *restrict values = (__global const number *)(fixed + m[MATRIX_ARGUMENTS + 2]); \
    SOURCE b = VECTOR(place, OP(place, op, LACUNA_OP_X)); \
    TARGET x = VECTOR(place, OP(place, op, LACUNA_OP_Y)); \
    const uint size = get_local_size(0)

__kernel LACUNA_GROUP void KERNEL(tri_solve_level)(OPERATION_ARGUMENTS) {
    BEGIN_SOLVE();
    for (uint at = slot_cap + group * size + ITEM; at < local_capacity; at += groups * size) {
        solve_place(row_ptr, columns, values, b, x, at);
    }
}

__kernel LACUNA_GROUP void KERNEL(tri_solve_levels)(OPERATION_ARGUMENTS) {
    BEGIN_SOLVE();
    __global const uint *restrict levels = (__global const uint *)(fixed + m[MATRIX_ARGUMENTS + 3]);
    for (uint level = slot_cap; level < local_capacity; level++) {
        const uint end = levels[level + 1];
        for (uint at = levels[level] + ITEM; at < end; at += size) {
            solve_place(row_ptr, columns, values, b, x, at);
        }
        SYNC_ALL();
    }
}
