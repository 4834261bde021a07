// Complete factorisations of KLU, UMFPACK and CHOLMOD (SuiteSparse): seconds of the order, the factors and a solve with ones, each the
// least of several runs, and the residual after at most three steps of refinement. See direct.sh.
//
//     direct A.mtx ...
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>
#include <suitesparse/cholmod.h>
#include <suitesparse/klu.h>
#include <suitesparse/umfpack.h>

constexpr int RUNS = 5;
constexpr double LONG = 2.0;

struct Columns {
  int n = 0;
  std::vector<int> ptr, rows;
  std::vector<double> values;
  bool symmetric = true;
};

/// A square matrix in a Matrix Market file, with real, integer or pattern entries.
static bool read(const char *path, Columns &a) {
  std::ifstream in(path);
  std::string line;
  if (!std::getline(in, line)) return false;
  const bool general = line.find("general") != std::string::npos, skew = line.find("skew") != std::string::npos;
  const bool pattern = line.find("pattern") != std::string::npos;
  if (line.find("coordinate") == std::string::npos || line.find("complex") != std::string::npos) return false;
  while (std::getline(in, line) && line[0] == '%') {}
  long rows, cols, count;
  std::istringstream(line) >> rows >> cols >> count;
  if (rows != cols) return false;
  struct Entry { int i, j; double v; };
  std::vector<Entry> entries;
  for (long k = 0; k < count; k++) {
    int i, j;
    double v = 1;
    in >> i >> j;
    if (!pattern) in >> v;
    entries.push_back({i - 1, j - 1, v});
    if (!general && i != j) entries.push_back({j - 1, i - 1, skew ? -v : v});
  }
  a.n = rows;
  std::sort(entries.begin(), entries.end(), [](const Entry &p, const Entry &q) { return p.j != q.j ? p.j < q.j : p.i < q.i; });
  a.ptr.assign(rows + 1, 0);
  for (size_t k = 0; k < entries.size(); k++) {
    if (k && entries[k].i == entries[k - 1].i && entries[k].j == entries[k - 1].j) {
      a.values.back() += entries[k].v;
      continue;
    }
    a.rows.push_back(entries[k].i);
    a.values.push_back(entries[k].v);
    a.ptr[entries[k].j + 1]++;
  }
  for (long k = 0; k < rows; k++) a.ptr[k + 1] += a.ptr[k];
  auto at = [&](int i, int j) {
    auto first = a.rows.begin() + a.ptr[j], end = a.rows.begin() + a.ptr[j + 1];
    auto found = std::lower_bound(first, end, i);
    return found != end && *found == i ? a.values[found - a.rows.begin()] : 0.0;
  };
  for (int j = 0; j < a.n && a.symmetric; j++)
    for (int k = a.ptr[j]; k < a.ptr[j + 1]; k++)
      if (at(j, a.rows[k]) != a.values[k]) { a.symmetric = false; break; }
  return true;
}

static double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

static double residual(const Columns &a, const std::vector<double> &x, std::vector<double> &r) {
  r.assign(a.n, 1.0);
  for (int j = 0; j < a.n; j++)
    for (int k = a.ptr[j]; k < a.ptr[j + 1]; k++) r[a.rows[k]] -= a.values[k] * x[j];
  double sum = 0;
  for (double v : r) sum += v * v;
  return std::sqrt(sum / a.n);
}

struct Solver {
  std::function<bool()> order, factors;
  std::function<void(const std::vector<double> &, std::vector<double> &)> solve;
  std::function<void()> end;
};

static void measure(const std::string &name, const char *peer, const Columns &a, const std::function<Solver()> &make) {
  double best = 1e300, times[3] = {}, left = INFINITY, spent = 0;
  for (int run = 0; run < RUNS && spent < LONG; run++) {
    Solver s = make();
    const double begin = now();
    if (!s.order()) { s.end(); break; }
    const double ordered = now();
    if (!s.factors()) { s.end(); break; }
    const double factored = now();
    std::vector<double> b(a.n, 1.0), x(a.n), r, d(a.n);
    s.solve(b, x);
    const double solved = now();
    double rest = residual(a, x, r);
    for (int step = 0; step < 3 && !(rest <= 1e-8); step++) {
      s.solve(r, d);
      for (int i = 0; i < a.n; i++) x[i] += d[i];
      const double next = residual(a, x, r);
      if (!(next < rest)) break;
      rest = next;
    }
    s.end();
    spent += solved - begin;
    if (solved - begin < best) {
      best = solved - begin;
      times[0] = ordered - begin, times[1] = factored - ordered, times[2] = solved - factored, left = rest;
    }
  }
  if (best < 1e300)
    std::printf("{\"name\":\"%s\",\"peer\":\"%s\",\"order\":%.3e,\"factors\":%.3e,\"solve\":%.3e,\"residual\":%.1e}\n", name.c_str(), peer, times[0],
                times[1], times[2], std::isfinite(left) ? left : 9e99);
  else
    std::printf("{\"name\":\"%s\",\"peer\":\"%s\",\"error\":\"refused\"}\n", name.c_str(), peer);
  std::fflush(stdout);
}

int main(int count, char **words) {
  for (int k = 1; k < count; k++) {
    Columns a;
    std::string name = words[k];
    name = name.substr(name.find_last_of('/') + 1);
    name = name.substr(0, name.rfind(".mtx"));
    if (!read(words[k], a)) continue;
    const int n = a.n;
    measure(name, "klu", a, [&] {
      auto common = std::make_shared<klu_common>();
      klu_defaults(common.get());
      auto symbolic = std::make_shared<klu_symbolic *>(nullptr);
      auto numeric = std::make_shared<klu_numeric *>(nullptr);
      return Solver{
          [&a, n, common, symbolic] { return (*symbolic = klu_analyze(n, const_cast<int *>(a.ptr.data()), const_cast<int *>(a.rows.data()), common.get())) != nullptr; },
          [&a, common, symbolic, numeric] {
            *numeric = klu_factor(const_cast<int *>(a.ptr.data()), const_cast<int *>(a.rows.data()), const_cast<double *>(a.values.data()), *symbolic, common.get());
            return *numeric != nullptr;
          },
          [n, common, symbolic, numeric](const std::vector<double> &b, std::vector<double> &x) { x = b; klu_solve(*symbolic, *numeric, n, 1, x.data(), common.get()); },
          [common, symbolic, numeric] { klu_free_numeric(numeric.get(), common.get()); klu_free_symbolic(symbolic.get(), common.get()); }};
    });
    measure(name, "umfpack", a, [&] {
      auto symbolic = std::make_shared<void *>(nullptr), numeric = std::make_shared<void *>(nullptr);
      auto control = std::make_shared<std::vector<double>>(UMFPACK_CONTROL);
      umfpack_di_defaults(control->data());
      (*control)[UMFPACK_IRSTEP] = 0;
      return Solver{
          [&a, n, symbolic, control] { return umfpack_di_symbolic(n, n, a.ptr.data(), a.rows.data(), a.values.data(), symbolic.get(), control->data(), nullptr) == UMFPACK_OK; },
          [&a, symbolic, numeric, control] { return umfpack_di_numeric(a.ptr.data(), a.rows.data(), a.values.data(), *symbolic, numeric.get(), control->data(), nullptr) == UMFPACK_OK; },
          [&a, numeric, control](const std::vector<double> &b, std::vector<double> &x) {
            umfpack_di_solve(UMFPACK_A, a.ptr.data(), a.rows.data(), a.values.data(), x.data(), b.data(), *numeric, control->data(), nullptr);
          },
          [symbolic, numeric] { umfpack_di_free_numeric(numeric.get()); umfpack_di_free_symbolic(symbolic.get()); }};
    });
    if (!a.symmetric) continue;
    measure(name, "cholmod", a, [&] {
      auto common = std::make_shared<cholmod_common>();
      cholmod_start(common.get());
      common->print = 0;
      std::vector<int> ptr{0}, rows;
      std::vector<double> values;
      for (int j = 0; j < n; j++) {
        for (int q = a.ptr[j]; q < a.ptr[j + 1]; q++)
          if (a.rows[q] >= j) rows.push_back(a.rows[q]), values.push_back(a.values[q]);
        ptr.push_back(rows.size());
      }
      cholmod_sparse *lower = cholmod_allocate_sparse(n, n, rows.size(), 1, 1, -1, CHOLMOD_REAL, common.get());
      std::memcpy(lower->p, ptr.data(), ptr.size() * sizeof(int));
      std::memcpy(lower->i, rows.data(), rows.size() * sizeof(int));
      std::memcpy(lower->x, values.data(), values.size() * sizeof(double));
      auto matrix = std::make_shared<cholmod_sparse *>(lower);
      auto factor = std::make_shared<cholmod_factor *>(nullptr);
      return Solver{
          [matrix, factor, common] { return (*factor = cholmod_analyze(*matrix, common.get())) != nullptr; },
          [matrix, factor, common] { return cholmod_factorize(*matrix, *factor, common.get()) && common->status == CHOLMOD_OK; },
          [n, factor, common](const std::vector<double> &b, std::vector<double> &x) {
            cholmod_dense *right = cholmod_allocate_dense(n, 1, n, CHOLMOD_REAL, common.get());
            std::memcpy(right->x, b.data(), n * sizeof(double));
            cholmod_dense *solved = cholmod_solve(CHOLMOD_A, *factor, right, common.get());
            std::memcpy(x.data(), solved->x, n * sizeof(double));
            cholmod_free_dense(&right, common.get());
            cholmod_free_dense(&solved, common.get());
          },
          [matrix, factor, common] { cholmod_free_factor(factor.get(), common.get()); cholmod_free_sparse(matrix.get(), common.get()); cholmod_finish(common.get()); }};
    });
  }
}
