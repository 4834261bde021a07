// x <- A^-1 b with a triangular matrix: the places of one level, or several levels in sequence.
//
// Formula: x[i] = (b[i] - a[k] x[col[k]] - ...) r, one fused multiply-add for each entry of the row in order. The last
// entry of a place has the row i as its column and r, the reciprocal of the diagonal entry, as its value.
// Bytes moved per row: an offset, its columns and values, b and x once, x of the rows it depends on (from cache if they
// are near).
// Launch shape: `tri_solve_level`: one work-item for each place, any number of work-groups. `tri_solve_levels`: one
// work-group with a barrier between levels. `tri_solve_groups`: a work-group for each group of rows that depend on each
// other alone.
// Assumes: `slot_cap` to `local_capacity` are places of one level for the first kernel, levels for the second; for the
// third they are the numbers of levels and of groups. The last array has the levels for the first two, the borders of the
// groups and the level of each row for the third. Vectors are not narrow. The instructions of the operation run
// afterwards (see `sweep`).

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

// Entries of a row that a work-item fetches before its level is due.
#define FETCHED_AHEAD 4u

__kernel LACUNA_GROUP void KERNEL(tri_solve_groups)(OPERATION_ARGUMENTS) {
    BEGIN_SOLVE();
    const uint depth = slot_cap, all = local_capacity;
    __global const uint *restrict borders = (__global const uint *)(fixed + m[MATRIX_ARGUMENTS + 3]);
    __global const uint *restrict levels = borders + all + 1;
    for (uint own = group; own < all; own += groups) {
        const uint first = borders[own] + ITEM, last = borders[own + 1];
        if (size == 1) {
            for (uint at = first; at < last; at++) {
                solve_place(row_ptr, columns, values, b, x, at);
            }
            continue;
        }
        if (last + ITEM - first > size) {
            for (uint level = 0; level < depth; level++) {
                for (uint at = first; at < last; at += size) {
                    if (levels[at] == level) {
                        solve_place(row_ptr, columns, values, b, x, at);
                    }
                }
                SYNC_ALL();
            }
            continue;
        }
        // A row for each work-item at most, which everything but x is fetched for at first.
        uint mine = depth, k = 0, end = 0, row = 0, column[FETCHED_AHEAD];
        number sum = ZERO, by = ZERO, value[FETCHED_AHEAD];
        if (first < last) {
            mine = levels[first], k = row_ptr[first], end = row_ptr[first + 1] - 1, row = columns[end], by = values[end];
            UNROLLED
            for (uint e = 0; e < FETCHED_AHEAD; e++) {
                if (k + e < end) {
                    column[e] = columns[k + e], value[e] = -values[k + e];
                }
            }
            sum = GET(b, row);
        }
        for (uint level = 0; level < depth; level++) {
            if (mine == level) {
                UNROLLED
                for (uint e = 0; e < FETCHED_AHEAD; e++) {
                    if (k + e < end) {
                        sum = multiply_add(value[e], GET(x, column[e]), sum);
                    }
                }
                for (k += FETCHED_AHEAD; k < end; k++) {
                    sum = multiply_add(-values[k], GET(x, columns[k]), sum);
                }
                PUT(x, row, times(sum, by));
            }
            SYNC_ALL();
        }
    }
}
