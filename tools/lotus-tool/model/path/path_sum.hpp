// Adds up how much time of the critical path each activity takes, such as an operation or stage.
#ifndef LOTUS_TOOL_MODEL_PATH_PATH_SUM_HPP
#define LOTUS_TOOL_MODEL_PATH_PATH_SUM_HPP

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "model/path/critical_path.hpp"
#include "model/pipeline/off_cpu.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// Adds up the time of each activity, which is identified by its kind and name.
class path_sum {
 public:
  /// @param activities  receives each added interval, in the order of calls; may be nullptr.
  explicit path_sum(const run_data& run, std::vector<path_activity>* activities = nullptr)
      : run_(run), activities_(activities) {}

  /// Adds the interval from start_ns to end_ns to the activity with this kind and name.
  /// @param file  the log of the thread that worked in the interval; nullopt if no thread did.
  void add(path_kind kind, std::optional<std::uint32_t> name, std::int64_t start_ns,
           std::int64_t end_ns, optional_file file) {
    if (end_ns <= start_ns) return;
    if (activities_ != nullptr) activities_->push_back({start_ns, end_ns, name, kind, file});
    path_share& to = shares_[{kind, name}];
    if (to.ns == 0) {
      to.kind = kind;
      if (name) to.name = run_.names.name(*name).substr(1);
      to.cpu = cpu_split{0, 0, 0};
    }
    to.ns += end_ns - start_ns;
    if (end_ns - start_ns > to.longest_ns) {
      to.longest_ns = end_ns - start_ns;
      to.longest_at_ns = start_ns - run_.first_ns;
      to.longest_file = file;
    }
    const off_cpu_time* const off = run_.side.off_cpu_of(file, kind == path_kind::step);
    if (off == nullptr) {
      to.cpu.reset();
    } else if (to.cpu) {
      *to.cpu += off->split(start_ns, end_ns);
    }
  }

  /// Adds the sums of another object of the same run. Its activities are not added.
  void add(const path_sum& other) {
    for (const auto& [of, share] : other.shares_) {
      const auto [at, is_new] = shares_.try_emplace(of, share);
      if (is_new) continue;
      path_share& to = at->second;
      to.ns += share.ns;
      if (share.longest_ns > to.longest_ns) {
        to.longest_ns = share.longest_ns;
        to.longest_at_ns = share.longest_at_ns;
        to.longest_file = share.longest_file;
      }
      if (!share.cpu) {
        to.cpu.reset();
      } else if (to.cpu) {
        *to.cpu += *share.cpu;
      }
    }
  }

  std::vector<path_share> shares() const {
    std::vector<path_share> all;
    all.reserve(shares_.size());
    for (const auto& [of, share] : shares_) all.push_back(share);
    std::stable_sort(all.begin(), all.end(),
                     [](const path_share& a, const path_share& b) { return a.ns > b.ns; });
    return all;
  }

 private:
  const run_data& run_;
  std::vector<path_activity>* activities_;
  std::map<std::pair<path_kind, std::optional<std::uint32_t>>, path_share> shares_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PATH_PATH_SUM_HPP
