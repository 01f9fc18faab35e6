#include "yardstick.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <string_view>
#include <vector>

#include "errors.hpp"

namespace tilegate::bench {
namespace {

struct TimedAlgorithm {
  std::string_view name;
  double algorithm_s = 0.0, cublas_s = 0.0;
};

// "CublasLt@<configuration>/<problem>,<place>,<seconds>,<seconds of cublasSgemm>"
bool parse_row(std::string_view line, TimedAlgorithm& row) {
  std::vector<std::string_view> cells;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(',', begin), line.size());
    cells.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  const auto read = [](std::string_view text, double& seconds) {
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, seconds);
    return error == std::errc() && stop == end && seconds > 0.0 && std::isfinite(seconds);
  };
  if (cells.size() != 4) return false;
  row.name = cells[0];
  const std::size_t slash = row.name.find('/');
  return row.name.starts_with("CublasLt@") && slash != std::string_view::npos &&
         read(cells[2], row.algorithm_s) && read(cells[3], row.cublas_s);
}

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

YardstickChoice read_yardstick_choice(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw UsageError("--yardstick: cannot read " + path);
  std::map<std::string, std::vector<double>> ratios;  // to cublasSgemm, by benchmark
  std::string line;
  std::getline(file, line);  // the header
  for (int number = 2; std::getline(file, line); ++number) {
    TimedAlgorithm row;
    if (!parse_row(line, row)) {
      throw UsageError("--yardstick: " + path + ":" + std::to_string(number) +
                       ": no sample of --choose-yardstick");
    }
    ratios[std::string(row.name)].push_back(row.cublas_s / row.algorithm_s);
  }
  if (ratios.empty()) throw UsageError("--yardstick: " + path + " has no samples");
  YardstickChoice choice;
  std::map<std::string, double> fastest;
  for (auto& [name, values] : ratios) {
    const std::size_t at = name.find('@'), slash = name.find('/');
    const std::string problem = name.substr(slash + 1);
    double& best = fastest.try_emplace(problem, 1.0).first->second;
    std::string& configuration = choice[problem];
    const double ratio = median(values);
    if (ratio <= best) continue;
    best = ratio;
    configuration = name.substr(at + 1, slash - at - 1);
  }
  return choice;
}

}  // namespace tilegate::bench
