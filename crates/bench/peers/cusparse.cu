// cuSPARSE and cuBLAS: the product in compressed sparse rows by the faster of the two algorithms, and textbook loops of our
// own whose numbers stay on the device, so that the host waits once, at the end. `cusparse` calls the libraries in every
// iteration, `cusparse-graph` replays the 30 iterations as one graph, captured in the set-up of the solve.
#include "peer.hpp"
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cusparse.h>

inline void check(bool good, const char *what, int status, int line) {
  if (good) return;
  std::fprintf(stderr, "cusparse.cu, line %d: %s gave %d\n", line, what, status);
  std::exit(1);
}
#define CUDA(call) (status = (int)(call), check(status == (int)cudaSuccess, #call, status, __LINE__))
#define BLAS(call) (status = (int)(call), check(status == (int)CUBLAS_STATUS_SUCCESS, #call, status, __LINE__))
#define SPARSE(call) (status = (int)(call), check(status == (int)CUSPARSE_STATUS_SUCCESS, #call, status, __LINE__))
static int status;

template <typename T> struct Blas;
template <> struct Blas<double> {
  static constexpr auto dot = cublasDdot;
  static constexpr auto nrm2 = cublasDnrm2;
  static constexpr auto axpy = cublasDaxpy;
  static constexpr auto scal = cublasDscal;
  static constexpr auto gemv = cublasDgemv;
  static constexpr cudaDataType type = CUDA_R_64F;
};
template <> struct Blas<float> {
  static constexpr auto dot = cublasSdot;
  static constexpr auto nrm2 = cublasSnrm2;
  static constexpr auto axpy = cublasSaxpy;
  static constexpr auto scal = cublasSscal;
  static constexpr auto gemv = cublasSgemv;
  static constexpr cudaDataType type = CUDA_R_32F;
};

// Numbers on the device.
enum Cell { ONE, MINUS_ONE, ZERO, RHO, NEXT, SIGMA, ALPHA, MINUS_ALPHA, BETA, TS, TT, OMEGA, MINUS_OMEGA, NORM, INVERSE, CELLS };

template <typename T> __global__ void constants(T *c) { c[ONE] = 1, c[MINUS_ONE] = -1, c[ZERO] = 0; }
template <typename T> __global__ void divide(const T *a, const T *b, T *quotient, T *negative) {
  *quotient = *a / *b, *negative = -*quotient;
}
template <typename T> __global__ void cg_beta(T *c) { c[BETA] = c[NEXT] / c[RHO], c[RHO] = c[NEXT]; }
template <typename T> __global__ void bicgstab_beta(T *c) {
  c[BETA] = c[NEXT] / c[RHO] * (c[ALPHA] / c[OMEGA]), c[RHO] = c[NEXT];
}
template <typename T> __global__ void invert(T *c) { c[INVERSE] = 1 / c[NORM]; }

// The libraries and a matrix on the device.
template <typename T> struct Library {
  cudaStream_t stream;
  cublasHandle_t blas;
  cusparseHandle_t sparse;
  cusparseSpMatDescr_t a;
  cusparseDnVecDescr_t in, out;
  cusparseSpMVAlg_t algorithm;
  void *buffers[2], *buffer, *workspace, *arrays[3];
  T *cells;
  int n;

  explicit Library(const Csr<T> &csr) : n((int)csr.rows) {
    CUDA(cudaStreamCreate(&stream));
    BLAS(cublasCreate(&blas));
    BLAS(cublasSetStream(blas, stream));
    BLAS(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_DEVICE));
    const std::size_t bytes = 32 << 20;
    CUDA(cudaMalloc(&workspace, bytes));
    BLAS(cublasSetWorkspace(blas, workspace, bytes));
    SPARSE(cusparseCreate(&sparse));
    SPARSE(cusparseSetStream(sparse, stream));
    SPARSE(cusparseSetPointerMode(sparse, CUSPARSE_POINTER_MODE_DEVICE));
    CUDA(cudaMalloc(&cells, CELLS * sizeof(T)));
    constants<<<1, 1, 0, stream>>>(cells);
    upload(csr.row_ptr, arrays[0]), upload(csr.col_idx, arrays[1]), upload(csr.values, arrays[2]);
    SPARSE(cusparseCreateCsr(&a, csr.rows, csr.cols, csr.nnz, arrays[0], arrays[1], arrays[2], CUSPARSE_INDEX_32I,
                             CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, Blas<T>::type));
    T *x, *y;
    CUDA(cudaMalloc(&x, n * sizeof(T)));
    CUDA(cudaMalloc(&y, n * sizeof(T)));
    CUDA(cudaMemset(x, 0, n * sizeof(T)));
    SPARSE(cusparseCreateDnVec(&in, n, x, Blas<T>::type));
    SPARSE(cusparseCreateDnVec(&out, n, y, Blas<T>::type));
    choose(x, y);
    CUDA(cudaFree(x));
    CUDA(cudaFree(y));
  }
  Library(const Library &) = delete;
  ~Library() {
    cusparseDestroyDnVec(in), cusparseDestroyDnVec(out), cusparseDestroySpMat(a), cusparseDestroy(sparse);
    cublasDestroy(blas), cudaStreamDestroy(stream);
    for (void *array : {arrays[0], arrays[1], arrays[2], buffers[0], buffers[1], workspace, (void *)cells}) cudaFree(array);
  }
  template <typename V> void upload(const V &from, void *&to) {
    std::size_t bytes = from.size() * sizeof from[0];
    CUDA(cudaMalloc(&to, bytes));
    CUDA(cudaMemcpy(to, from.data(), bytes, cudaMemcpyHostToDevice));
  }
  // The faster algorithm for products, timed.
  void choose(T *x, T *y) {
    const cusparseSpMVAlg_t algorithms[] = {CUSPARSE_SPMV_CSR_ALG1, CUSPARSE_SPMV_CSR_ALG2};
    double times[2];
    for (int i = 0; i < 2; i++) {
      std::size_t bytes = 0;
      algorithm = algorithms[i];
      SPARSE(cusparseSpMV_bufferSize(sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, cells + ONE, a, in, cells + ZERO, out,
                                     Blas<T>::type, algorithm, &bytes));
      CUDA(cudaMalloc(&buffers[i], std::max<std::size_t>(bytes, 8)));
      buffer = buffers[i];
      SPARSE(cusparseSpMV_preprocess(sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, cells + ONE, a, in, cells + ZERO, out,
                                     Blas<T>::type, algorithm, buffer));
      times[i] = median(5, [&] {
        for (int k = 0; k < 10; k++) product(x, y);
        wait();
      });
    }
    // The matrix keeps what was found out last.
    if (times[0] < times[1]) {
      algorithm = algorithms[0], buffer = buffers[0];
      SPARSE(cusparseSpMV_preprocess(sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, cells + ONE, a, in, cells + ZERO, out,
                                     Blas<T>::type, algorithm, buffer));
    }
  }
  void product(T *x, T *y) {
    SPARSE(cusparseDnVecSetValues(in, x));
    SPARSE(cusparseDnVecSetValues(out, y));
    SPARSE(cusparseSpMV(sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, cells + ONE, a, in, cells + ZERO, out, Blas<T>::type,
                        algorithm, buffer));
  }
  void dot(const T *x, const T *y, Cell to) { BLAS(Blas<T>::dot(blas, n, x, 1, y, 1, cells + to)); }
  void axpy(Cell by, const T *x, T *y) { BLAS(Blas<T>::axpy(blas, n, cells + by, x, 1, y, 1)); }
  void scal(Cell by, T *x) { BLAS(Blas<T>::scal(blas, n, cells + by, x, 1)); }
  void copy(const T *from, T *to) {
    CUDA(cudaMemcpyAsync(to, from, n * sizeof(T), cudaMemcpyDeviceToDevice, stream));
  }
  void quotient(Cell a, Cell b, Cell to, Cell negative) {
    divide<<<1, 1, 0, stream>>>(cells + a, cells + b, cells + to, cells + negative);
  }
  void wait() { CUDA(cudaStreamSynchronize(stream)); }
};

// A solve with its vectors on the device, in one piece of memory.
template <typename T> struct Solve {
  Library<T> &lib;
  std::string method;
  T *memory, *b, *x, *rest, *h;
  cudaGraphExec_t graph = nullptr;
  const int m = ITERATIONS;

  Solve(Library<T> &lib, const std::string &method, bool captured) : lib(lib), method(method) {
    std::size_t n = lib.n, vectors = method == "cg" ? 5 : method == "bicgstab" ? 7 : m + 3;
    CUDA(cudaMalloc(&memory, (vectors * n + m * (m + 1) + m) * sizeof(T)));
    b = memory, x = b + n, rest = x + n, h = memory + vectors * n;
    if (!captured) return;
    cudaGraph_t recorded;
    CUDA(cudaStreamBeginCapture(lib.stream, cudaStreamCaptureModeThreadLocal));
    enqueue();
    CUDA(cudaStreamEndCapture(lib.stream, &recorded));
    CUDA(cudaGraphInstantiate(&graph, recorded, 0));
    CUDA(cudaGraphDestroy(recorded));
  }
  Solve(const Solve &) = delete;
  ~Solve() {
    if (graph) cudaGraphExecDestroy(graph);
    cudaFree(memory);
  }

  // With b and x on the device, from x = 0.
  void run() {
    if (graph)
      CUDA(cudaGraphLaunch(graph, lib.stream));
    else
      enqueue();
    if (method == "gmres") combine();
    lib.wait();
  }
  // With b and x on the host.
  void run(const std::vector<T> &from, std::vector<T> &to) {
    CUDA(cudaMemcpyAsync(b, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice, lib.stream));
    run();
    CUDA(cudaMemcpy(to.data(), x, to.size() * sizeof(T), cudaMemcpyDeviceToHost));
  }

private:
  void enqueue() {
    if (method == "cg") cg();
    if (method == "bicgstab") bicgstab();
    if (method == "gmres") gmres();
  }
  void cg() {
    T *r = rest, *p = r + lib.n, *q = p + lib.n;
    CUDA(cudaMemsetAsync(x, 0, lib.n * sizeof(T), lib.stream));
    lib.copy(b, r), lib.copy(b, p);
    lib.dot(r, r, RHO);
    for (int i = 0; i < m; i++) {
      lib.product(p, q);
      lib.dot(p, q, SIGMA);
      lib.quotient(RHO, SIGMA, ALPHA, MINUS_ALPHA);
      lib.axpy(ALPHA, p, x), lib.axpy(MINUS_ALPHA, q, r);
      lib.dot(r, r, NEXT);
      cg_beta<<<1, 1, 0, lib.stream>>>(lib.cells);
      lib.scal(BETA, p), lib.axpy(ONE, r, p);
    }
  }
  void bicgstab() {
    T *r = rest, *r0 = r + lib.n, *p = r0 + lib.n, *v = p + lib.n, *t = v + lib.n;
    CUDA(cudaMemsetAsync(x, 0, lib.n * sizeof(T), lib.stream));
    lib.copy(b, r), lib.copy(b, r0), lib.copy(b, p);
    lib.dot(r0, r, RHO);
    for (int i = 0; i < m; i++) {
      lib.product(p, v);
      lib.dot(r0, v, SIGMA);
      lib.quotient(RHO, SIGMA, ALPHA, MINUS_ALPHA);
      lib.axpy(MINUS_ALPHA, v, r);
      lib.product(r, t);
      lib.dot(t, r, TS), lib.dot(t, t, TT);
      lib.quotient(TS, TT, OMEGA, MINUS_OMEGA);
      lib.axpy(ALPHA, p, x), lib.axpy(OMEGA, r, x), lib.axpy(MINUS_OMEGA, t, r);
      lib.dot(r0, r, NEXT);
      bicgstab_beta<<<1, 1, 0, lib.stream>>>(lib.cells);
      lib.axpy(MINUS_OMEGA, v, p), lib.scal(BETA, p), lib.axpy(ONE, r, p);
    }
  }
  // Classical Gram-Schmidt, once. The first column of h is the norm of b's, the others are H.
  void gmres() {
    T *v = rest, *c = lib.cells;
    lib.copy(b, v);
    normalize(v, h);
    for (int j = 0; j < m; j++) {
      T *w = v + (std::size_t)(j + 1) * lib.n, *column = h + m + (m + 1) * j;
      lib.product(w - lib.n, w);
      BLAS(Blas<T>::gemv(lib.blas, CUBLAS_OP_T, lib.n, j + 1, c + ONE, v, lib.n, w, 1, c + ZERO, column, 1));
      BLAS(Blas<T>::gemv(lib.blas, CUBLAS_OP_N, lib.n, j + 1, c + MINUS_ONE, v, lib.n, column, 1, c + ONE, w, 1));
      normalize(w, column + j + 1);
    }
  }
  void normalize(T *w, T *norm) {
    BLAS(Blas<T>::nrm2(lib.blas, lib.n, w, 1, lib.cells + NORM));
    invert<<<1, 1, 0, lib.stream>>>(lib.cells);
    lib.scal(INVERSE, w);
    CUDA(cudaMemcpyAsync(norm, lib.cells + NORM, sizeof(T), cudaMemcpyDeviceToDevice, lib.stream));
  }
  // x = V y with y from the small problem, which the host solves.
  void combine() {
    std::vector<T> all(m + m * (m + 1));
    CUDA(cudaMemcpyAsync(all.data(), h, all.size() * sizeof(T), cudaMemcpyDeviceToHost, lib.stream));
    lib.wait();
    std::vector<T> y = least_squares(std::vector<T>(all.begin() + m, all.end()), m, all[0]);
    CUDA(cudaMemcpyAsync(h, y.data(), m * sizeof(T), cudaMemcpyHostToDevice, lib.stream));
    BLAS(Blas<T>::gemv(lib.blas, CUBLAS_OP_N, lib.n, m, lib.cells + ONE, rest, lib.n, h, 1, lib.cells + ZERO, x, 1));
  }
};

template <typename T> void solve(const Task &task, const std::string &method, Library<T> &lib, const Csr<T> &csr, bool captured) {
  const char *peer = captured ? "cusparse-graph" : "cusparse";
  std::vector<T> b(csr.rows, T(1)), x(csr.rows);
  Result result;
  result.fresh = median(task.repeats, [&] { Solve<T>(lib, method, captured).run(b, x); });
  Solve<T> ready(lib, method, captured);
  result.again = median(task.repeats, [&] { ready.run(b, x); });
  result.on_device = median(task.repeats, [&] { ready.run(); });
  result.residual = residual(csr, x);
  task.print(peer, 0, method, csr.rows, result);
}

template <typename T> void run(const Task &task) {
  Csr<T> csr = read_csr<T>(task.file);
  Library<T> lib(csr);
  for (const std::string &method : task.methods) {
    if (method != "spmv") {
      solve(task, method, lib, csr, false);
      solve(task, method, lib, csr, true);
      continue;
    }
    T *x, *y;
    std::vector<T> b(csr.rows, T(1));
    CUDA(cudaMalloc(&x, b.size() * sizeof(T)));
    CUDA(cudaMalloc(&y, b.size() * sizeof(T)));
    CUDA(cudaMemcpy(x, b.data(), b.size() * sizeof(T), cudaMemcpyHostToDevice));
    double time = median(task.repeats, [&] {
      for (int i = 0; i < PRODUCTS; i++) lib.product(x, y);
      lib.wait();
    });
    task.print("cusparse", 0, method, csr.rows, {time / PRODUCTS, time / PRODUCTS});
    CUDA(cudaFree(x));
    CUDA(cudaFree(y));
  }
}

int main(int argc, char **argv) {
  for (const Task &task : tasks(argc, argv)) task.single ? run<float>(task) : run<double>(task);
}
