/* Lacuna: sparse linear systems. The C interface, for C99 and C++11 on.
 *
 * Every function returns a lac_status, LAC_OK or what went wrong; the sentence that says more is that of lac_last_error, which each thread
 * has its own of. Not to converge is no error: see lac_report.reason.
 *
 * Arrays of the caller's are copied, or used up before a function returns. Handles are freed in any order, and NULL is fine. A system
 * is used by one call at a time (LAC_BUSY otherwise), from any thread. Callbacks run on the thread that called.
 *
 * Complex numbers are two reals, as C99 and Fortran have them. Sizes are counts of numbers, never of bytes.
 */
#ifndef LACUNA_H
#define LACUNA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LAC_ABI 1 /* what lac_abi returns from a library that goes with this header */

/* What a function returns. The numbers stay. */
typedef enum lac_status {
    LAC_OK = 0,
    LAC_BAD_ARGUMENT = 1,  /* an argument, a length, an element of a vector */
    LAC_BAD_MATRIX = 2,    /* a shape, a structure, an entry */
    LAC_UNSUPPORTED = 3,   /* what this library, backend or format does not do */
    LAC_NO_MEMORY = 4,
    LAC_DEVICE = 5,        /* a device that fails or is absent */
    LAC_CALLBACK = 6,      /* a function of the caller's returned other than 0 */
    LAC_BUSY = 7,          /* the handle is in use by another call */
    LAC_PANIC = 8,         /* a bug of the library's: please report it */
    LAC_FILE = 9,          /* a file that cannot be read, written or parsed */
    LAC_CANCELLED = 10
} lac_status;

/* Number types. */
typedef enum lac_type { LAC_F32 = 0, LAC_F64 = 1, LAC_C32 = 2, LAC_C64 = 3 } lac_type; /* C32: two floats, C64: two doubles */
/* Types of indices. */
typedef enum lac_index { LAC_I32 = 0, LAC_I64 = 1 } lac_index;
/* How arrays are compressed. */
typedef enum lac_layout { LAC_ROWS = 0, LAC_COLUMNS = 1 } lac_layout;

/* Why a solve ended: lac_report.reason. */
typedef enum lac_reason {
    LAC_CONVERGED = 0, /* |b - A x| <= max(rtol |b|, atol) holds for the x returned */
    LAC_LIMIT = 1,
    LAC_STAGNATED = 2,
    LAC_ACCURACY_ATTAINED = 3,
    LAC_DIVERGED = -1,
    LAC_INDEFINITE_OPERATOR = -2,
    LAC_INDEFINITE_PRECONDITIONER = -3,
    LAC_OUT_OF_RANGE = -4,
    LAC_BREAKDOWN = -5,
    LAC_NOT_FINITE = -6,
    LAC_USER_CANCELLED = -7,
    LAC_CUSTOM = -8
} lac_reason;

typedef struct lac_device lac_device;
typedef struct lac_matrix lac_matrix;
typedef struct lac_system lac_system;

/* When a solve ends. Set size to sizeof(lac_stop): fields can be added. A NULL takes what the options of the system say. */
typedef struct lac_stop {
    size_t size;
    double rtol, atol;
    uint64_t max_iters; /* 0: ten for each unknown, within limits */
} lac_stop;

/* How a solve ended. Set size to sizeof(lac_report) before the call. Numbers that are not known are NaN. */
typedef struct lac_report {
    size_t size;
    int32_t reason; /* a lac_reason */
    uint64_t iterations;
    double residual;       /* |r| / |b| by the recurrence */
    double true_residual;  /* |b - A x| / |b|; of least squares |A'(b - A x)| / |A'b| */
    double backward_error; /* |b - A x| / (|A| |x| + |b|) */
    double seconds, setup_seconds;
} lac_report;

/* y = A x, or y = A' x for an adjoint. Any other value than 0 ends the call with LAC_CALLBACK. Not called for an x of zeros. */
typedef int (*lac_apply_fn)(const void *x, void *y, void *user);
/* Called some 25 times a second. Any other value than 0 cancels the solve: LAC_USER_CANCELLED. */
typedef int (*lac_monitor_fn)(uint64_t iterations, double residual, void *user);

/* --- the library ------------------------------------------------------------------------------------------------ */

const char *lac_version(void);
uint32_t lac_abi(void);

/* The sentence about the last error of this thread, cut to the capacity with its 0. Returns the length that it needs, with the 0; 1 if
 * there was no error. In UTF-8. */
size_t lac_last_error(char *text, size_t capacity);

/* The name of a reason, as "limit"; "unknown" for other numbers. */
const char *lac_reason_name(int32_t reason);

/* --- devices ---------------------------------------------------------------------------------------------------- */

/* "cpu", "cpu:threads=4", "cuda", "cuda:1", "opencl"; NULL or "auto" for the best one there is. */
lac_status lac_device_open(const char *name, lac_device **device);
void lac_device_close(lac_device *device);

/* The devices of each backend, as JSON: [{"backend": "cpu", "devices": ["..."], "message": ""}, ...]. As all texts: cut to the capacity
 * with its 0, and the length that it needs in length, if that is not NULL. */
lac_status lac_devices(char *json, size_t capacity, size_t *length);

/* --- matrices ---------------------------------------------------------------------------------------------------- */

/* By compressed rows, or columns. `pointers` has one more than there are rows (columns), and begins with the base, 0 or 1. Indices in a
 * row in any order; repeated ones are summed. */
lac_status lac_matrix_compressed(lac_type type, lac_index index, lac_layout layout, int64_t rows, int64_t cols, const void *pointers,
                                 const void *indices, const void *values, int base, lac_matrix **matrix);
/* The same by rows. */
lac_status lac_matrix_csr(lac_type type, lac_index index, int64_t rows, int64_t cols, const void *row_ptr, const void *col_idx,
                          const void *values, int base, lac_matrix **matrix);
/* By entries in any order; repeated ones are summed. */
lac_status lac_matrix_coo(lac_type type, lac_index index, int64_t rows, int64_t cols, int64_t entries, const void *i, const void *j,
                          const void *values, int base, lac_matrix **matrix);
/* By functions. The adjoint may be NULL: some methods need it. `user` and the functions live as long as the matrix and its systems. */
lac_status lac_matrix_operator(lac_type type, int64_t rows, int64_t cols, lac_apply_fn apply, lac_apply_fn adjoint, void *user,
                               lac_matrix **matrix);
/* In a file of Matrix Market, SciPy, PETSc, MATLAB or Rutherford-Boeing, compressed or not, or a model problem ("gen:poisson2d:64x64"). */
lac_status lac_matrix_read(const char *path, lac_type type, lac_matrix **matrix);
/* Rows, columns, and stored entries (-1 for an operator). Any pointer may be NULL. */
lac_status lac_matrix_size(const lac_matrix *matrix, int64_t *rows, int64_t *cols, int64_t *entries);
void lac_matrix_free(lac_matrix *matrix);

/* --- systems ------------------------------------------------------------------------------------------------------ */

/* A matrix on a device (NULL: the best one there is), prepared for solves. The matrix and the device may be freed at once.
 *
 * `options` is NULL or "key=value; ..." with the keys
 *     method, preconditioner   names with options of their own, as gmres:restart=50; auto chooses
 *     format, order, scale     names
 *     refine, strict           yes or no; strict: the method named and no other, nothing explained
 *     side                     left or right, of gmres's preconditioner
 *     restart                  iterations of a cycle
 *     damp, shift              min |b - A x|^2 + damp^2 |x|^2; (A - shift I) x = b
 *     rtol, atol, max_iters, norm (2 or max), dtol
 * A key that is not known is an error that lists them. */
lac_status lac_system_create(const lac_device *device, const lac_matrix *matrix, const char *options, lac_system **system);
/* The same with a preconditioner M, about the inverse of A, by functions on vectors as long as A has columns. */
lac_status lac_system_create_with(const lac_device *device, const lac_matrix *matrix, const char *options, lac_apply_fn m,
                                  lac_apply_fn adjoint, void *user, lac_system **system);
void lac_system_free(lac_system *system);

/* Solves for b from the guess in x, which receives the solution or the best vector found. stop, monitor and report may be NULL. b and x
 * must not overlap, here and below. */
lac_status lac_system_solve(lac_system *system, const void *b, void *x, const lac_stop *stop, lac_monitor_fn monitor, void *user,
                            lac_report *report);
/* The same for b and x at addresses in the memory of the GPU that the system is on (CUDA): nothing passes through the host. All that the
 * process has queued on the GPU is waited for first. x has a guess if from_guess is not 0. The method and the preconditioner in use solve
 * it and no other follows; x is as the method left it. LAC_UNSUPPORTED on other devices. */
lac_status lac_system_solve_device(lac_system *system, const void *b, void *x, int from_guess, const lac_stop *stop, lac_report *report);
/* Solves for k right-hand sides, columns that begin ldb (ldx) numbers apart; `reports` is NULL or has k, with the size of each set. */
lac_status lac_system_solve_columns(lac_system *system, int64_t k, const void *b, int64_t ldb, void *x, int64_t ldx,
                                    const lac_stop *stop, lac_report *reports);
/* Gives the matrix new values: those of its entries by rows, each row by columns. Not for operators. */
lac_status lac_system_update_values(lac_system *system, const void *values, int64_t entries);
/* y = A x, and z = M r by the preconditioner in use. Not for operators and functions, which the caller has. */
lac_status lac_system_product(lac_system *system, const void *x, void *y);
lac_status lac_system_precondition(lac_system *system, const void *r, void *z);

/* "choices" and "notes": an array of sentences; "history": the residuals of the last solve, by iteration; "setup": seconds by part. As
 * JSON. */
lac_status lac_system_text(lac_system *system, const char *what, char *json, size_t capacity, size_t *length);

#ifdef __cplusplus
}
#endif

#endif
