// The table that shows where the time of a run's critical path goes.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "findings/screen/first_screen.hpp"
#include "findings/words.hpp"
#include "model/path/critical_path.hpp"

namespace lotus::tool {
namespace {

/// Returns each part as a whole percentage of `all`. Rounds by the largest remainder method, so
/// that the percentages add up to exactly `sum`.
std::vector<int> percents(const std::vector<double>& parts, double all, int sum) {
  std::vector<int> found(parts.size());
  std::vector<std::pair<double, std::size_t>> remainders;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const double exact = all > 0 ? 100 * parts[i] / all : 0;
    found[i] = static_cast<int>(std::floor(exact));
    remainders.emplace_back(exact - std::floor(exact), i);
  }
  std::stable_sort(remainders.begin(), remainders.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  int left = sum - std::accumulate(found.begin(), found.end(), 0);
  for (std::size_t i = 0; i < remainders.size() && left > 0; ++i, --left) {
    ++found[remainders[i].second];
  }
  for (std::size_t i = remainders.size(); i-- > 0 && left < 0;) {
    int& last = found[remainders[i].second];
    const int less = std::min(last, -left);
    last -= less;
    left += less;
  }
  return found;
}

}  // namespace

std::vector<shown_share> path_rows(const critical_path& path, std::size_t rows) {
  std::vector<shown_share> found;
  std::vector<path_share> shares;
  for (const path_share& share : path.shares) {
    if (share.ns > 0) shares.push_back(share);
  }
  if (shares.empty() || rows == 0) return found;
  const auto run_ns = static_cast<double>(path.run_ns);
  std::vector<double> parts;
  parts.reserve(shares.size());
  for (const path_share& share : shares) parts.push_back(static_cast<double>(share.ns));
  std::vector<int> rounded = percents(parts, run_ns, 100);
  // Shares that round to 0 % are not shown, so they do not count as rows.
  const auto none = std::count(rounded.begin(), rounded.end(), 0);
  std::size_t others = 0;
  if (shares.size() - static_cast<std::size_t>(none) > rows) {
    path_share rest;
    rest.cpu.emplace();
    rest.cpu->run_queue_ns = rest.cpu->blocked_ns = 0;
    for (std::size_t i = rows - 1; i < shares.size(); ++i) {
      rest.ns += shares[i].ns;
      const std::optional<cpu_split>& cpu = shares[i].cpu;
      if (rest.cpu && cpu && cpu->run_queue_ns && cpu->blocked_ns) {
        *rest.cpu += *cpu;
      } else {
        rest.cpu.reset();
      }
    }
    others = shares.size() - (rows - 1);
    shares.resize(rows - 1);
    shares.push_back(rest);
    parts.resize(rows - 1);
    parts.push_back(static_cast<double>(rest.ns));
    rounded = percents(parts, run_ns, 100);
  }
  for (std::size_t i = 0; i < shares.size(); ++i) {
    shown_share row;
    if (others > 0 && i + 1 == shares.size()) {
      row.name = {"% other parts, each smaller", {name_word{std::to_string(others)}}};
    } else {
      row.name = {"%", {name_word{path_title(shares[i].kind, shares[i].name)}}};
    }
    row.share = rounded[i];
    const std::optional<cpu_split>& cpu = shares[i].cpu;
    if (cpu && cpu->run_queue_ns && cpu->blocked_ns) {
      const std::vector<int> split =
          percents({static_cast<double>(cpu->cpu_ns), static_cast<double>(*cpu->run_queue_ns),
                    static_cast<double>(*cpu->blocked_ns)},
                   run_ns, rounded[i]);
      row.running = split[0];
      row.no_cpu = split[1];
      row.blocked = split[2];
    }
    if (row.share > 0) found.push_back(std::move(row));
  }
  return found;
}

}  // namespace lotus::tool
