__kernel void LACUNA_ENTRY KERNEL(solve)(__global uchar *arena,
    __global const uchar *restrict fixed, __global const uint *restrict table, __global const ulong *restrict names,
    __global number *cells, __global ulong *control, __global real *history, __global ulong *exchange,
    __global ulong *shared, __global const uint *restrict windows, __global const uint *restrict params,
    __global const uint *restrict staged_columns, __global const number *restrict staged_values,
    const uint first_cell, const uint cell_count, const uint budget, const uint enter, const uint n,
    const uint half_words, const uint short_history, LOCAL(number, work), LOCAL(number, got), LOCAL(number, rows_at),
    LOCAL(number, window), LOCAL(number, local_cells), LOCAL(ulong, local_control), LOCAL(uint, local_params),
    LOCAL(ushort, local_columns), LOCAL(number, local_values) LACUNA_GIVEN) {
    FIXED_LOCAL(uint, next, 1);
    OPEN_LOCAL(number, work)
    OPEN_LOCAL(number, got)
    OPEN_LOCAL(number, rows_at)
    OPEN_LOCAL(number, window)
    OPEN_LOCAL(number, local_cells)
    OPEN_LOCAL(ulong, local_control)
    OPEN_LOCAL(uint, local_params)
    OPEN_LOCAL(ushort, local_columns)
    OPEN_LOCAL(number, local_values)
    uint op = (uint)GIVEN(LACUNA_CONTROL_OP);
    if (op == LACUNA_NONE) {
        return;
    }
    const uint group = get_group_id(0), groups = get_num_groups(0), segments = segments_of(n);
    const uint unit = group / WAYS, units = groups / WAYS, way = group % WAYS;
    const uint from = (uint)((ulong)segments * unit / units);
    const uint mine = (uint)((ulong)segments * (unit + 1) / units) - from;
    const uint first = from * SEGMENT, rows = (min(n - first, mine * SEGMENT) + WAYS - 1 - way) / WAYS;
    const bool own = ITEM < rows;
    const uint row = first + ITEM * WAYS + way, span = mine * SPAN;
    Share s = { { arena, fixed, table, names, cells, local_cells, local_control,
        group != 0 ? 0 : short_history ? (__global real *)(control + AT_HISTORY) : history, first_cell, cell_count,
        true }, exchange, shared, windows,
        staged_columns, staged_values, work, got, rows_at, window, local_columns, local_values, n, segments, half_words, from, mine,
        first, rows, way, $SUMS * ROOM * PARTS * 2 };
    Place rare = s.p;
$SHORTER    State state = { GIVEN(STATE_EPOCH), GIVEN(STATE_TAG), LACUNA_NONE, 0, LACUNA_NONE, false, true };
    const ulong start = state.epoch;
    for (uint i = ITEM; i < cell_count; i += SIZE) {
        local_cells[i] = cells[first_cell + i];
    }
    for (uint i = ITEM; i < LACUNA_CONTROL_WORDS; i += SIZE) {
        local_control[i] = GIVEN(i);
    }
#if ONE_GROUP
    if (ITEM == 0) {
        window[n] = ONE;
    }
#endif
$PARAMS
$LOAD
    BARRIER();
    TAKE_CHANGED(local_cells)
    if (enter == ENTER_CANCEL) {
        BARRIER();
        if (ITEM == 0) {
            next[0] = cancel(local_control) ? op | NEXT_HALT : op;
        }
        BARRIER();
        op = next[0];
    } else if (enter) {
        op |= NEXT_ENTER;
    }
    // The vector in memory written last, and its value.
    number last = ZERO;
    uint last_of = LACUNA_NONE;
    for (uint done = 0;; done++) {
        if ((op & NEXT_RARE) && op != LACUNA_NONE) {
            BARRIER();
            if (ITEM == 0) {
                uint kind = op & NEXT_RARE;
                advance_from(&rare, op & ~NEXT_RARE, kind == NEXT_DONE ? MODE_DONE
                    : kind == NEXT_HALT ? MODE_CANCEL : MODE_ENTER);
                next[0] = (uint)local_control[LACUNA_CONTROL_OP];
            }
            BARRIER();
            op = next[0];
        }
        if (op == LACUNA_NONE || done >= budget) {
            break;
        }
        bool ran = false;
$BODY
        if (!ran) {
            op |= NEXT_DONE;
        }
    }
    // No work-group may still need what the first one is about to change.
    if (state.epoch == start) {
        barrier_of_groups(&s, &state);
    }
$STORE
    BARRIER();
    if (group == 0) {
        for (uint i = ITEM; i < cell_count; i += SIZE) {
            cells[first_cell + i] = local_cells[i];
            ((__global number *)(control + AT_CELLS))[i] = local_cells[i];
        }
        for (uint i = ITEM; i < LACUNA_CONTROL_WORDS; i += SIZE) {
            control[i] = i == LACUNA_CONTROL_OP ? op : local_control[i];
        }
        if (ITEM == 0) {
            control[STATE_EPOCH] = state.epoch;
            control[STATE_TAG] = state.tag;
        }
    }
}
