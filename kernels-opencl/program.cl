// A whole program in one launch: operations one after the other until it stops or `budget` of them have run.
//
// Formula: that of each operation (sweep.cl, spmv_*.cl, basis.cl, cells.cl).
// Bytes moved per row: as the operations'; small systems stay in cache. Cells and control stay in local memory.
// Launch shape: one work-group of up to 32 teams (one work-item where LACUNA_CPU is 1), or several groups
// that meet at a barrier of their own after each operation whose results others need. Every group makes the sums and
// runs the instructions for itself, so that one meeting is enough.
// Assumes: several groups are only launched where the device runs all of them at once; `meeting` is 0; `partials` has
// room for the sums twice; the program's cells fit; at most 65536 segments.

// Waits until every group has come here `*met` + 1 times.
static inline void meet(volatile __global uint *meeting, uint *met) {
    SYNC_ALL();
    if (get_num_groups(0) > 1) {
        if (ITEM == 0) {
            *met += 1;
            DEVICE_FENCE();
            atomic_inc(meeting);
            while (*meeting < *met * (uint)get_num_groups(0)) {
            }
            DEVICE_FENCE();
        }
        SYNC_ALL();
    }
}

__kernel void KERNEL(program)(__global uchar *arena, __global const uchar *restrict fixed,
    __global const uint *restrict table, __global const ulong *restrict names, __global number *cells,
    __global ulong *control, __global real *history, __global number *partials, __global uint *meeting,
    const uint first, const uint cell_count, const uint budget, const uint slot_cap, const uint partials_half,
    __local number *work, __local number *slots, __local number *near_cells, __local ulong *near_control,
    __local ulong2 *near_table) {
    uint op = (uint)control[LACUNA_CONTROL_OP];
    if (op == LACUNA_NONE) {
        return;
    }
    const uint group = get_group_id(0), groups = get_num_groups(0);
    Place p = { arena, fixed, table, names, cells, near_cells, near_control, group == 0 ? history : 0, first,
        cell_count, true };
    for (uint i = ITEM; i < cell_count; i += get_local_size(0)) {
        near_cells[i] = cells[first + i];
    }
    for (uint i = ITEM; i < LACUNA_CONTROL_WORDS; i += get_local_size(0)) {
        near_control[i] = control[i];
    }
    SYNC_ALL();
    __local number *near = (__local number *)near_table;
    uint met = 0, turn = 0;
    for (uint done = 0; op != LACUNA_NONE && done < budget; done++) {
        uint kind = OP(p, op, LACUNA_OP_KIND);
        bool sums = sums_of(&p, op) > 0;
        // Sums of one operation may still be read while those of the next are written.
        turn ^= sums;
        __global number *sums_at = partials + (ulong)turn * partials_half;
        if (kind == LACUNA_KIND_SPMV) {
            if (MATRIX(p, OP(p, op, LACUNA_OP_MATRIX))[MATRIX_FORMAT] == FORMAT_HYB) {
                const Hyb a = hyb_of(&p, op);
                if (a.pieces > 0) {
                    sum_pieces(&a, group, groups, work);
                    meet(meeting, &met);
                }
            }
            switch (MATRIX(p, OP(p, op, LACUNA_OP_MATRIX))[MATRIX_FORMAT]) {
                case FORMAT_DIA: run_spmv_dia(&p, op, group, groups, slot_cap, slots, work, near, sums_at); break;
                case FORMAT_SELL: run_spmv_sell(&p, op, group, groups, slot_cap, slots, work, near, sums_at); break;
                case FORMAT_BCSR: run_spmv_bcsr(&p, op, group, groups, slot_cap, slots, work, near, sums_at); break;
                case FORMAT_HYB: run_spmv_hyb(&p, op, group, groups, slot_cap, slots, work, near, sums_at); break;
                case FORMAT_STENCIL:
                    run_spmv_stencil(&p, op, group, groups, slot_cap, slots, work, near, sums_at);
                    break;
                case FORMAT_PACKED: run_spmv_packed(&p, op, group, groups, slot_cap, slots, work, near, sums_at); break;
                case FORMAT_DENSE: run_spmv_dense(&p, op, group, groups, slot_cap, slots, work, near, sums_at); break;
                case FORMAT_PKT: run_spmv_pkt(&p, op, group, groups, slot_cap, slots, work, near, sums_at); break;
                default: run_spmv_csr(&p, op, group, groups, slot_cap, slots, work, near, sums_at); break;
            }
        } else if (kind == LACUNA_KIND_BASIS_DOT) {
            run_basis_dot(&p, op, group, groups, work, sums_at);
        } else if (kind == LACUNA_KIND_BASIS_AXPY) {
            run_basis_axpy(&p, op, group, groups, slot_cap, slots, work, near, sums_at);
        } else {
            run_sweep(&p, op, group, groups, slot_cap, slots, work, near, sums_at);
        }
        if (sums) {
            meet(meeting, &met);
            sum_partials(&p, op, segments_of(OP(p, op, LACUNA_OP_N)), sums_at, work);
        }
        SYNC_ALL();
        if (ITEM == 0) {
            advance_from(&p, op, MODE_DONE);
        }
        SYNC_ALL();
        op = (uint)near_control[LACUNA_CONTROL_OP];
        // Rows of other groups are read by products alone.
        if (!sums && op != LACUNA_NONE
            && (kind == LACUNA_KIND_SPMV || OP(p, op, LACUNA_OP_KIND) == LACUNA_KIND_SPMV)) {
            meet(meeting, &met);
        }
    }
    // No group may still need what the first one is about to change.
    meet(meeting, &met);
    if (group == 0) {
        for (uint i = ITEM; i < cell_count; i += get_local_size(0)) {
            cells[first + i] = near_cells[i];
        }
        for (uint i = ITEM; i < LACUNA_CONTROL_WORDS; i += get_local_size(0)) {
            control[i] = near_control[i];
        }
    }
}
