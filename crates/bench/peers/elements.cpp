// Eigen: assembly of the triplets that `elements_time N REPEATS FOLDER` left. Arguments: FOLDER N REPEATS.
#include <Eigen/Sparse>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

template <typename T> std::vector<T> numbers(const std::string &path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::vector<T> all(file.tellg() / sizeof(T));
  file.seekg(0).read(reinterpret_cast<char *>(all.data()), all.size() * sizeof(T));
  return all;
}

int main(int, char **argv) {
  std::string folder = argv[1];
  int n = std::stoi(argv[2]), repeats = std::stoi(argv[3]);
  auto rows = numbers<std::uint32_t>(folder + "/rows"), cols = numbers<std::uint32_t>(folder + "/cols");
  auto values = numbers<double>(folder + "/values");
  std::vector<Eigen::Triplet<double>> triplets;
  for (std::size_t k = 0; k < rows.size(); ++k) triplets.emplace_back(rows[k], cols[k], values[k]);
  std::vector<double> times;
  long entries = 0;
  for (int k = 0; k < repeats; ++k) {
    Eigen::SparseMatrix<double, Eigen::RowMajor, int> a(n * n, n * n);
    auto start = std::chrono::steady_clock::now();
    a.setFromTriplets(triplets.begin(), triplets.end());
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    entries = a.nonZeros();
  }
  std::sort(times.begin(), times.end());
  std::printf("%20s: %.3f s, %ld entries\n", "Eigen", times[repeats / 2], entries);
}
