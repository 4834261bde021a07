// Handles that free themselves, and a complex system by compressed columns.
#include <lacuna.h>

#include <complex>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

void check(lac_status status) {
    if (status == LAC_OK) return;
    std::string text(lac_last_error(nullptr, 0), '\0');
    lac_last_error(&text[0], text.size());
    throw std::runtime_error(text);
}

struct Free {
    void operator()(lac_matrix *matrix) const { lac_matrix_free(matrix); }
    void operator()(lac_system *system) const { lac_system_free(system); }
};
using Matrix = std::unique_ptr<lac_matrix, Free>;
using System = std::unique_ptr<lac_system, Free>;

Matrix by_columns(int64_t n, const std::vector<int64_t> &pointers, const std::vector<int64_t> &rows,
                  const std::vector<std::complex<double>> &values) {
    lac_matrix *matrix = nullptr;
    check(lac_matrix_compressed(LAC_C64, LAC_I64, LAC_COLUMNS, n, n, pointers.data(), rows.data(), values.data(), 1, &matrix));
    return Matrix(matrix);
}

} // namespace

int main() {
    try {
        // A Helmholtz problem on a line, with indices from 1 as Julia and Fortran have them.
        const int64_t n = 500;
        std::vector<int64_t> pointers{1}, rows;
        std::vector<std::complex<double>> values;
        for (int64_t j = 1; j <= n; j++) {
            if (j > 1) rows.push_back(j - 1), values.emplace_back(-1.0);
            rows.push_back(j), values.emplace_back(1.9, 0.1);
            if (j < n) rows.push_back(j + 1), values.emplace_back(-1.0, 0.01);
            pointers.push_back(static_cast<int64_t>(rows.size()) + 1);
        }
        const Matrix matrix = by_columns(n, pointers, rows, values);
        lac_system *made = nullptr;
        check(lac_system_create(nullptr, matrix.get(), "method=direct", &made));
        const System system(made);
        std::vector<std::complex<double>> b(static_cast<size_t>(n), 1.0), x(static_cast<size_t>(n)), y(x);
        lac_report report{};
        report.size = sizeof report;
        check(lac_system_solve(system.get(), b.data(), x.data(), nullptr, nullptr, nullptr, &report));
        check(lac_system_product(system.get(), x.data(), y.data()));
        // The entry below the diagonal of the first column is that of the second row: columns, not rows.
        const std::complex<double> second = values[1] * x[0] + values[3] * x[1] + values[5] * x[2];
        if (report.reason != LAC_CONVERGED || std::abs(y[1] - 1.0) > 1e-6 || std::abs(second - 1.0) > 1e-6) {
            throw std::runtime_error("the solution is wrong");
        }
        std::cout << lac_reason_name(report.reason) << ", |b - A x| = " << report.true_residual << " |b|\n";
    } catch (const std::exception &error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
    return 0;
}
