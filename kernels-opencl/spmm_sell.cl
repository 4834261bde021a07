// The product of a matrix in slices of 32 rows (SELL-32-256 and ELLPACK) with several vectors.
//
// Formula: Y[j][i] <- sum over the places of row i of value * X[j][column], padding included, for each column j as in
// spmv_sell.cl.
// Bytes moved per row: the columns and values of its places, an eighth of an offset, 4 bytes more if rows are sorted,
// once for VECTORS columns; each column of x once in all (from cache if columns are near) and of y once.
// Launch shape: as sweep.cl; one row for each work-item of a team, slice by slice, with coalesced loads.
// Assumes: sorting stays within segments of 256 rows; columns are one stride apart; no column of Y is a column of X.

static inline void sell_columns(const Place *p, uint op, const Columns *c, uint segment, uint count) {
    const Sell a = sell_of(p, op); // its x is not a column and is not used
    const uint base = segment * SEGMENT, lanes = (count + 31) / 32 * 32;
    EACH(e, lanes) {
        if (e >= lanes) {
            continue;
        }
        const ulong at = (ulong)a.slice_ptr[(base + e) / 32] * 32 + e % 32;
        const ulong end = (ulong)a.slice_ptr[(base + e) / 32 + 1] * 32;
        const uint row = a.sorted ? a.row_of[base + e] : base + e;
        for (uint first = 0; first < c->count; first += VECTORS) {
            NO_SUMS(sum)
            for (ulong k = at; k < end; k += 32) {
                ADD_ENTRY(sum, c, first, a.values[k], a.columns[k])
            }
            if (row < base + count) {
                PUT_COLUMNS(sum, c, first, row)
            }
        }
    }
}

__kernel LACUNA_GROUP void KERNEL(spmm_sell)(OPERATION_ARGUMENTS) {
    BEGIN_OPERATION();
    OVER_COLUMNS(sell_columns(p, op, &columns, segment, count))
    END_OPERATION();
}
