// What the peers share: the matrix file, the clock, the rounds.
#pragma once
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <sstream>
#include <string>
#include <vector>

const int ITERATIONS = 30;
// Products in a row for each wait, on devices that have a queue.
const int PRODUCTS = 30;
// Conjugate gradients with Jacobi's preconditioner until ‖b − A x‖ ≤ TOLERANCE ‖b‖.
const char *const CONVERGED = "jacobi-cg";
const double TOLERANCE = 1e-8;
const int MOST_ITERATIONS = 10000;

// A matrix in compressed sparse rows, from PETSc's binary form, as `lacuna generate SPEC --output NAME.petsc` writes it: big-endian.
template <typename T> struct Csr {
  std::int64_t rows = 0, cols = 0, nnz = 0;
  std::vector<int> row_ptr, col_idx;
  std::vector<T> values;
};

template <typename T> Csr<T> read_csr(const char *path) {
  FILE *file = std::fopen(path, "rb");
  auto get = [&](void *to, std::size_t bytes) {
    if (!file || std::fread(to, 1, bytes, file) != bytes) {
      std::fprintf(stderr, "cannot read %s\n", path);
      std::exit(2);
    }
  };
  auto get_ints = [&](int *to, std::size_t count) {
    get(to, 4 * count);
    for (std::size_t k = 0; k < count; k++) to[k] = int(__builtin_bswap32(std::uint32_t(to[k])));
  };
  int head[4];
  get_ints(head, 4);
  if (head[0] != 1211216) {
    std::fprintf(stderr, "%s is not a matrix file\n", path);
    std::exit(2);
  }
  Csr<T> a;
  a.rows = head[1], a.cols = head[2], a.nnz = head[3];
  a.row_ptr.resize(a.rows + 1), a.col_idx.resize(a.nnz), a.values.resize(a.nnz);
  get_ints(a.row_ptr.data() + 1, a.rows);
  for (std::int64_t i = 0; i < a.rows; i++) a.row_ptr[i + 1] += a.row_ptr[i];
  get_ints(a.col_idx.data(), a.nnz);
  std::vector<std::uint64_t> words(a.nnz);
  get(words.data(), 8 * words.size());
  for (std::int64_t k = 0; k < a.nnz; k++) {
    std::uint64_t word = __builtin_bswap64(words[k]);
    double value;
    std::memcpy(&value, &word, 8);
    a.values[k] = T(value);
  }
  std::fclose(file);
  return a;
}

// Calls `put(row, column, value)` for every entry, in no order.
template <typename T, typename Put> void shuffled(const Csr<T> &a, Put put) {
  std::vector<std::pair<int, int>> places(a.nnz);
  for (std::int64_t i = 0; i < a.rows; i++)
    for (int k = a.row_ptr[i]; k < a.row_ptr[i + 1]; k++) places[k] = {int(i), k};
  std::shuffle(places.begin(), places.end(), std::mt19937_64(1));
  for (auto [row, at] : places) put(row, a.col_idx[at], a.values[at]);
}

inline double now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

// The median time of `work` in seconds, over `repeats` calls or as many as fit 20 ms, whichever are more; one call goes
// before. `again(elapsed, calls)` decides whether to go on, so that several processes can agree.
template <typename Work, typename Again> double median(int repeats, Work work, Again again) {
  work();
  std::vector<double> times;
  double begin = now();
  do {
    double start = now();
    work();
    times.push_back(now() - start);
  } while (again((int)times.size() < repeats || now() - begin < 0.02));
  std::sort(times.begin(), times.end());
  std::size_t n = times.size();
  return (times[(n - 1) / 2] + times[n / 2]) / 2;
}
template <typename Work> double median(int repeats, Work work) {
  return median(repeats, work, [](bool more) { return more; });
}

// `‖b − A x‖ / ‖b‖` for a right-hand side of ones.
template <typename T> double residual(const Csr<T> &a, const std::vector<T> &x) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.rows; i++) {
    double r = 1;
    for (int k = a.row_ptr[i]; k < a.row_ptr[i + 1]; k++) r -= double(a.values[k]) * double(x[a.col_idx[k]]);
    sum += r * r;
  }
  return std::sqrt(sum / a.rows);
}

// The y that minimises ‖beta e1 − H y‖, by Givens rotations; H is (m + 1) x m, upper Hessenberg, column after column.
template <typename T> std::vector<T> least_squares(std::vector<T> h, int m, T beta) {
  std::vector<T> g(m + 1);
  g[0] = beta;
  auto at = [&](int i, int j) -> T & { return h[(m + 1) * j + i]; };
  for (int i = 0; i < m; i++) {
    T size = std::hypot(at(i, i), at(i + 1, i)), c = at(i, i) / size, s = at(i + 1, i) / size;
    for (int j = i; j < m; j++) {
      T upper = c * at(i, j) + s * at(i + 1, j);
      at(i + 1, j) = c * at(i + 1, j) - s * at(i, j);
      at(i, j) = upper;
    }
    g[i + 1] = -s * g[i], g[i] *= c;
  }
  for (int j = m - 1; j >= 0; j--) {
    g[j] /= at(j, j);
    for (int i = 0; i < j; i++) g[i] -= g[j] * at(i, j);
  }
  g.pop_back();
  return g;
}

// What was measured, in seconds: with everything made anew, and with what there is; on a device also without transfers of b
// and x (else negative). The residual that was reached is negative where it was not asked for; iterations are those of
// CONVERGED.
struct Result {
  double fresh, again, on_device = -1, residual = -1;
  const char *format = nullptr;
  long iterations = 0;
};

// The arguments: FILE NAME TYPE REPEATS METHOD,METHOD,...
struct Task {
  const char *file, *name;
  bool single;
  int repeats;
  std::vector<std::string> methods;

  Task(int argc, char **argv) {
    if (argc < 6) {
      std::fprintf(stderr, "usage: %s FILE NAME f64|f32 REPEATS METHOD,..\n", argv[0]);
      std::exit(2);
    }
    file = argv[1], name = argv[2], single = !std::strcmp(argv[3], "f32"), repeats = std::atoi(argv[4]);
    std::stringstream list(argv[5]);
    for (std::string method; std::getline(list, method, ',');) methods.push_back(method);
  }
  // The same matrix as a Matrix Market file with every entry.
  std::string market() const { return std::string(file, std::strlen(file) - std::strlen(".petsc")) + ".mtx"; }
  // A line of JSON, with times in microseconds an iteration. No threads are those of a device.
  void print(const char *peer, int threads, const std::string &method, std::int64_t n, const Result &result) const {
    bool converged = method == CONVERGED, fixed = method == "cg" || method == "bicgstab" || method == "gmres";
    double scale = 1e6 / (converged ? result.iterations : fixed ? ITERATIONS : 1);
    std::printf("{\"kind\":\"peer\",\"peer\":\"%s\",\"method\":\"%s\",\"matrix\":\"%s\",\"type\":\"%s\","
                "\"n\":%lld,\"fresh_us\":%.4f,\"again_us\":%.4f",
                peer, converged ? "cg" : method.c_str(), name, single ? "f32" : "f64", (long long)n, scale * result.fresh,
                scale * result.again);
    if (converged)
      std::printf(",\"precond\":\"jacobi\",\"stop\":\"to |b - A x| <= 1e-8 |b|\",\"iterations\":%ld", result.iterations);
    if (threads > 0) std::printf(",\"threads\":%d", threads);
    if (result.on_device >= 0) std::printf(",\"on_device_us\":%.4f", scale * result.on_device);
    if (result.residual >= 0) std::printf(",\"residual\":%.3e", result.residual);
    if (result.format) std::printf(",\"format\":\"%s\"", result.format);
    std::puts("}");
    std::fflush(stdout);
  }
  void check(const char *peer, const std::string &method, long iterations) const {
    if (iterations != ITERATIONS)
      std::fprintf(stderr, "%s %s %s: %ld iterations instead of %d\n", peer, method.c_str(), name, iterations, ITERATIONS);
  }
};

// The same five arguments once or more often, so that a device is opened once for all of them.
inline std::vector<Task> tasks(int argc, char **argv) {
  std::vector<Task> all;
  do {
    all.emplace_back(argc, argv);
    argc -= 5, argv += 5;
  } while (argc > 1);
  return all;
}
