// A whole program in one launch: operations one after the other until it stops or `budget` of them have run.
//
// Formula: that of each operation (sweep.cl, spmv_*.cl, basis.cl, cells.cl).
// Bytes moved per row: as the operations'; small systems stay in cache. Cells and control stay in local memory.
// Launch shape: one work-group of one work-item, where LACUNA_CPU is 1.
// Assumes: the program's cells fit local memory; at most 65536 segments.
#if LACUNA_CPU
__kernel void KERNEL(program)(__global uchar *arena, __global const uchar *restrict fixed,
    __global const uint *restrict table, __global const ulong *restrict names, __global number *cells,
    __global ulong *control, __global real *history, __global number *partials, const uint first,
    const uint cell_count, const uint budget, __local number *work, __local number *slots,
    __local number *near_cells, __local ulong *near_control) {
    uint op = (uint)control[LACUNA_CONTROL_OP];
    if (op == LACUNA_NONE) {
        return;
    }
    Place p = { arena, fixed, table, names, cells, near_cells, near_control, history, first, cell_count, true };
    for (uint i = 0; i < cell_count; i++) {
        near_cells[i] = cells[first + i];
    }
    for (uint i = 0; i < LACUNA_CONTROL_WORDS; i++) {
        near_control[i] = control[i];
    }
#define RUN(name) run_##name(&p, op, 0, 1, 1, slots, work, 0, partials)
    for (uint done = 0; op != LACUNA_NONE && done < budget; done++) {
        uint kind = OP(p, op, LACUNA_OP_KIND);
        if (kind == LACUNA_KIND_SPMV) {
            switch (MATRIX(p, OP(p, op, LACUNA_OP_MATRIX))[MATRIX_FORMAT]) {
                case FORMAT_DIA: RUN(spmv_dia); break;
                case FORMAT_SELL: RUN(spmv_sell); break;
                case FORMAT_BCSR: RUN(spmv_bcsr); break;
                case FORMAT_HYB: {
                    const Hyb a = hyb_of(&p, op);
                    sum_pieces(&a, 0, 1, work);
                    RUN(spmv_hyb);
                    break;
                }
                case FORMAT_STENCIL: RUN(spmv_stencil); break;
                case FORMAT_PACKED: RUN(spmv_packed); break;
                case FORMAT_DENSE: RUN(spmv_dense); break;
                case FORMAT_PKT: RUN(spmv_pkt); break;
                default: RUN(spmv_csr); break;
            }
        } else if (kind == LACUNA_KIND_BASIS_DOT) {
            run_basis_dot(&p, op, 0, 1, work, partials);
        } else if (kind == LACUNA_KIND_BASIS_AXPY) {
            RUN(basis_axpy);
        } else {
            RUN(sweep);
        }
        sum_partials(&p, op, segments_of(OP(p, op, LACUNA_OP_N)), partials, work);
        advance_from(&p, op, MODE_DONE);
        op = (uint)near_control[LACUNA_CONTROL_OP];
    }
    for (uint i = 0; i < cell_count; i++) {
        cells[first + i] = near_cells[i];
    }
    for (uint i = 0; i < LACUNA_CONTROL_WORDS; i++) {
        control[i] = near_control[i];
    }
}
#endif
