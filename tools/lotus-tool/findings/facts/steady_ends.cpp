#include "findings/facts/steady_ends.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/run_data.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

double quantile_of(std::vector<double>& values, double q) {
  const auto at =
      values.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace

std::optional<double> steady_ends_per_s(const run_data& run, std::string_view operation) {
  constexpr std::size_t fewest = 30;
  const std::uint32_t name = run.names.find('S' + std::string(operation));
  if (name == raw_name_table::none) return std::nullopt;
  std::vector<time_span> calls;
  for (std::size_t file = 0; file < run.files->files.size(); ++file) {
    run.for_each_operation(file, [&](const struct operation& op) {
      if (op.name == name) calls.push_back({op.start_ns, op.end_ns()});
    });
  }
  std::sort(calls.begin(), calls.end(),
            [](const time_span& a, const time_span& b) { return a.end_ns < b.end_ns; });
  std::vector<double> between;
  std::vector<double> durations;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    durations.push_back(static_cast<double>(calls[i].duration_ns()));
    if (i == 0 || calls[i].start_ns >= calls[i - 1].end_ns) continue;
    between.push_back(static_cast<double>(calls[i].end_ns - calls[i - 1].end_ns));
  }
  if (between.size() < fewest || 2 * between.size() < calls.size()) return std::nullopt;
  const double usual_ns = quantile_of(between, 0.5);
  const bool steady =
      quantile_of(between, 0.1) >= 0.7 * usual_ns && quantile_of(between, 0.9) <= 1.4 * usual_ns;
  if (!steady || quantile_of(durations, 0.05) > 1.3 * usual_ns) return std::nullopt;
  return 1e9 / usual_ns;
}

}  // namespace lotus::tool
