// Limits how many intervals are drawn, by leaving out the shortest.
#ifndef LOTUS_TOOL_COMMANDS_REPORT_LONGEST_DRAWN_HPP
#define LOTUS_TOOL_COMMANDS_REPORT_LONGEST_DRAWN_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/terminal/table.hpp"
#include "model/times/kept_durations.hpp"

namespace lotus::tool {

/// Finds the shortest duration for which at most `most` intervals are drawn.
class longest_drawn {
 public:
  void add(std::int64_t duration_ns) {
    const std::size_t bucket = narrow_bucket::of(duration_ns);
    if (bucket >= counts_.size()) counts_.resize(bucket + 1);
    ++counts_[bucket];
    ++all_;
  }

  /// Returns 0 if all are drawn; otherwise adds an explanation to `note`.
  std::int64_t from_ns(const std::string& what, std::uint64_t most, std::string& note) const {
    if (all_ <= most) return 0;
    std::uint64_t drawn = 0;
    std::size_t bucket = counts_.size();
    while (bucket > 0 && drawn + counts_[bucket - 1] <= most) drawn += counts_[--bucket];
    const std::int64_t from_ns = narrow_bucket::lowest(bucket);
    note += (note.empty() ? "Of " : " Of ") + std::to_string(all_) + ' ' + what + ' ' +
            (drawn == 0 ? "none is" : std::to_string(drawn) + " are") + " drawn, those that took " +
            human_time(static_cast<double>(from_ns)) +
            " or longer; draw a part with lotus-tool viz.";
    return from_ns;
  }

 private:
  std::vector<std::uint64_t> counts_;
  std::uint64_t all_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_REPORT_LONGEST_DRAWN_HPP
