// A whole program in one launch: operations in sequence until the program stops or `budget` of them have run.
//
// Formula: that of each operation (sweep.cl, spmv_*.cl, basis.cl, cells.cl).
// Bytes moved per row: as the operations; small systems stay in cache. Cells and the control block stay in local
// memory.
// Launch shape: one work-group of one work-item, if LACUNA_CPU is 1.
// Assumes: LACUNA_FORMATS has a bit for each format of the program; its cells fit local memory; at most 65536 segments.
#if LACUNA_CPU
__kernel void KERNEL(program)(__global uchar *arena, __global const uchar *restrict fixed,
    __global const uint *restrict table, __global const ulong *restrict names, __global number *cells,
    __global ulong *control, __global real *history, __global number *partials, const uint first,
    const uint cell_count, const uint budget, __local number *work, __local number *slots,
    __local number *local_cells, __local ulong *local_control) {
    uint op = (uint)control[LACUNA_CONTROL_OP];
    if (op == LACUNA_NONE) {
        return;
    }
    Place p = { arena, fixed, table, names, cells, local_cells, local_control, history, first, cell_count, true };
    for (uint i = 0; i < cell_count; i++) {
        local_cells[i] = cells[first + i];
    }
    for (uint i = 0; i < LACUNA_CONTROL_WORDS; i++) {
        local_control[i] = control[i];
    }
#define RUN(name) run_##name(&p, op, 0, 1, 1, slots, work, 0, partials)
// The compiler removes the formats that no matrix of the program has.
#define HAS(code) (LACUNA_FORMATS >> (code) & 1)
#define PRODUCT(code, name) \
    case code: \
        if (HAS(code)) { \
            RUN(name); \
        } \
        break;
    for (uint done = 0; op != LACUNA_NONE && done < budget; done++) {
        uint kind = OP(p, op, LACUNA_OP_KIND);
        if (kind == LACUNA_KIND_SPMV) {
            if (HAS(FORMAT_HYB) && MATRIX(p, OP(p, op, LACUNA_OP_MATRIX))[MATRIX_FORMAT] == FORMAT_HYB) {
                const Hyb a = hyb_of(&p, op);
                sum_pieces(&a, 0, 1, work);
            }
            switch (MATRIX(p, OP(p, op, LACUNA_OP_MATRIX))[MATRIX_FORMAT]) {
                PRODUCT(FORMAT_CSR, spmv_csr)
                PRODUCT(FORMAT_DIA, spmv_dia)
                PRODUCT(FORMAT_SELL, spmv_sell)
                PRODUCT(FORMAT_BCSR, spmv_bcsr)
                PRODUCT(FORMAT_HYB, spmv_hyb)
                PRODUCT(FORMAT_STENCIL, spmv_stencil)
                PRODUCT(FORMAT_PACKED, spmv_packed)
                PRODUCT(FORMAT_DENSE, spmv_dense)
                PRODUCT(FORMAT_PKT, spmv_pkt)
                PRODUCT(FORMAT_INTERPOLATION, spmv_interpolation)
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
        op = (uint)local_control[LACUNA_CONTROL_OP];
    }
    for (uint i = 0; i < cell_count; i++) {
        cells[first + i] = local_cells[i];
    }
    for (uint i = 0; i < LACUNA_CONTROL_WORDS; i++) {
        control[i] = local_control[i];
    }
}
#endif
