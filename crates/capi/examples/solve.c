/* Solves a model problem by a chosen method, watches it, and solves again with other values and by functions. */
#include <lacuna.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program with the library's sentence unless all is well. */
static void check(lac_status status) {
    char text[500];
    if (status != LAC_OK) {
        lac_last_error(text, sizeof text);
        fprintf(stderr, "status %d: %s\n", (int)status, text);
        exit(1);
    }
}

static void expect(int holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "expected %s\n", what);
        exit(1);
    }
}

static int monitor(uint64_t iterations, double residual, void *user) {
    (void)residual;
    *(uint64_t *)user = iterations;
    return 0;
}

/* y = A x for the second difference, whose entries are nowhere. */
static int second_difference(const void *x, void *y, void *user) {
    const double *from = (const double *)x;
    double *to = (double *)y;
    const int64_t n = *(const int64_t *)user;
    int64_t i;
    for (i = 0; i < n; i++) {
        to[i] = 2.1 * from[i] - (i > 0 ? from[i - 1] : 0.0) - (i + 1 < n ? from[i + 1] : 0.0);
    }
    return 0;
}

static int failing(const void *x, void *y, void *user) {
    (void)x, (void)y, (void)user;
    return 7;
}

int main(void) {
    enum { N = 1000 };
    int64_t rows, cols, entries, n = N, k;
    int32_t pointers[N + 1], columns[3 * N];
    static double values[3 * N], b[2 * N], x[2 * N], y[N];
    uint64_t seen = 0;
    char text[2000];
    size_t length;
    lac_device *device = NULL;
    lac_matrix *matrix = NULL;
    lac_system *system = NULL;
    lac_stop stop;
    lac_report report, reports[2];

    expect(lac_abi() == LAC_ABI, "a library that goes with the header");
    check(lac_device_open("cpu:threads=2", &device));
    pointers[0] = 0;
    for (k = 0, n = 0; n < N; n++) {
        if (n > 0) columns[k] = (int32_t)n - 1, values[k++] = -1.0;
        columns[k] = (int32_t)n, values[k++] = 2.1;
        if (n + 1 < N) columns[k] = (int32_t)n + 1, values[k++] = -1.0;
        pointers[n + 1] = (int32_t)k;
        b[n] = b[N + n] = 1.0;
    }
    check(lac_matrix_csr(LAC_F64, LAC_I32, N, N, pointers, columns, values, 0, &matrix));
    check(lac_matrix_size(matrix, &rows, &cols, &entries));
    expect(rows == N && cols == N && entries == k, "the size of the matrix");
    check(lac_system_create(device, matrix, "method=cg; preconditioner=ilu0; rtol=1e-10", &system));
    lac_matrix_free(matrix); /* the system has its own */
    lac_device_close(device);

    memset(&report, 0, sizeof report);
    report.size = sizeof report;
    check(lac_system_solve(system, b, x, NULL, monitor, &seen, &report));
    printf("%s after %d iterations, |b - A x| = %.1e |b|\n", lac_reason_name(report.reason), (int)report.iterations,
           report.true_residual);
    expect(report.reason == LAC_CONVERGED && report.true_residual <= 1e-10, "a solution");
    check(lac_system_product(system, x, y));
    for (n = 0; n < N; n++) expect(fabs(y[n] - 1.0) < 1e-8, "A x = b");
    check(lac_system_precondition(system, b, y));

    stop.size = sizeof stop, stop.rtol = 1e-12, stop.atol = 0.0, stop.max_iters = 1;
    memset(x, 0, sizeof x);
    for (n = 0; n < k; n++) values[n] *= 2.0;
    check(lac_system_update_values(system, values, k));
    reports[0].size = reports[1].size = sizeof reports[0];
    check(lac_system_solve_columns(system, 2, b, N, x, N, NULL, reports));
    /* Addresses of a GPU are for systems on a GPU. */
    expect(lac_system_solve_device(system, b, x, 0, NULL, NULL) == LAC_UNSUPPORTED, "no GPU to solve on");
    expect(reports[1].reason == LAC_CONVERGED && memcmp(x, x + N, N * sizeof *x) == 0, "equal columns, equal bits");
    check(lac_system_text(system, "choices", text, sizeof text, &length));
    expect(length == strlen(text) + 1 && text[0] == '[', "what was chosen");
    printf("%s\n", text);
    lac_system_free(system);

    /* Not to converge is no error. */
    n = N;
    check(lac_matrix_operator(LAC_F64, N, N, second_difference, second_difference, &n, &matrix));
    check(lac_system_create(NULL, matrix, "method=cg", &system));
    memset(x, 0, sizeof x);
    check(lac_system_solve(system, b, x, &stop, NULL, NULL, &report));
    expect(report.reason == LAC_LIMIT && report.iterations == 1, "one iteration");
    stop.max_iters = 0;
    check(lac_system_solve(system, b, x, &stop, NULL, NULL, &report));
    expect(report.reason == LAC_CONVERGED, "a solution by functions");
    lac_system_free(system);
    lac_matrix_free(matrix);

    /* What is wrong is said, and leaves NULL behind. */
    expect(lac_matrix_operator(LAC_F64, N, N, failing, NULL, NULL, &matrix) == LAC_OK, "an operator");
    check(lac_system_create(NULL, matrix, "method=gmres", &system));
    expect(lac_system_solve(system, b, x, NULL, NULL, NULL, NULL) == LAC_CALLBACK, "the failure of a callback");
    lac_system_free(system);
    expect(lac_system_create(NULL, matrix, "methods=cg", &system) == LAC_BAD_ARGUMENT && system == NULL, "an unknown key");
    lac_last_error(text, sizeof text);
    expect(strstr(text, "method, preconditioner") != NULL, "the keys there are");
    lac_matrix_free(matrix);
    pointers[1] = 2000000000;
    expect(lac_matrix_csr(LAC_F64, LAC_I32, N, N, pointers, columns, values, 0, &matrix) == LAC_BAD_MATRIX, "pointers that lead away");
    expect(lac_matrix_csr(LAC_F64, LAC_I32, N, N, NULL, columns, values, 0, &matrix) == LAC_BAD_ARGUMENT, "no pointers");
    expect(lac_matrix_csr((lac_type)9, LAC_I32, -1, N, NULL, NULL, NULL, 0, &matrix) == LAC_BAD_ARGUMENT, "an unknown type");
    expect(lac_system_solve(NULL, b, x, NULL, NULL, NULL, NULL) == LAC_BAD_ARGUMENT, "a handle");
    expect(lac_matrix_read("nothing.mtx", LAC_F64, &matrix) == LAC_FILE, "no file");
    lac_system_free(NULL), lac_matrix_free(NULL), lac_device_close(NULL);
    printf("lacuna %s\n", lac_version());
    return 0;
}
