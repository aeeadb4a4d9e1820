// Chooses the operations that the timeline draws, and sums up the others, so that the
// page's panels can still show exact sums.
#ifndef LOTUS_TOOL_COMMANDS_REPORT_TIMELINE_UNDRAWN_SUMS_HPP
#define LOTUS_TOOL_COMMANDS_REPORT_TIMELINE_UNDRAWN_SUMS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/formats/json_writer.hpp"
#include "base/terminal/table.hpp"
#include "model/run_data.hpp"
#include "model/times/kept_durations.hpp"

namespace lotus::tool {

/// Divides the time of each log into cells, for which the durations of operations are summed.
/// Returns the sorted edges of the cells. The edges are the times when the thread began or finished
/// a batch, because the panel of a batch shows sums for exactly that time. A thread without batches
/// gets evenly spaced edges.
/// @param most  maximum number of cells for all logs together.
std::vector<std::vector<std::int64_t>> cells_by_file(const run_data& run, std::size_t most);

/// The sums of one log's operations that are not drawn, for each cell in which such operations
/// begin.
class undrawn_sums {
 public:
  /// @param edges  the edges of the log's cells, from cells_by_file(). Must outlive this object.
  explicit undrawn_sums(const std::vector<std::int64_t>& edges)
      : edges_(edges), cells_(edges.size() < 2 ? 1 : edges.size() - 1) {}

  /// Adds an operation that is not drawn.
  void add(const operation& op);

  /// Writes the sums as a string. All numbers are in LEB128, in base64. A cell consists of its
  /// start minus the end of the previous written cell (zigzag), its length, and the number of
  /// names. For each name follow the name's number, the number of operations, and the sum and
  /// maximum of their durations.
  /// @param run_first_ns  the start of the run.
  /// @param name_of  maps a name's number in the run to its number on the page.
  void write(json_writer&& json, std::int64_t run_first_ns,
             const std::vector<std::uint32_t>& name_of) const;

 private:
  struct name_sum {
    std::uint32_t name = 0;
    std::uint64_t count = 0;
    std::int64_t ns = 0;
    std::int64_t longest_ns = 0;
  };

  /// Sets cell_ to the cell in which an operation begins, and [from_ns_, to_ns_) to the range of
  /// start times for which the result is the same.
  void find_cell(std::int64_t start_ns);

  const std::vector<std::int64_t>& edges_;
  std::vector<std::vector<name_sum>> cells_;
  std::size_t cell_ = 0;
  std::int64_t from_ns_ = INT64_MAX;  // INT64_MAX: find_cell() was not called yet
  std::int64_t to_ns_ = INT64_MIN;
};

/// Decides which intervals of one log are drawn: all that took at least `all_from_ns`, and every
/// n-th one of those that took at least `from_ns`. This limits the number of drawn intervals even
/// if many have about the same duration.
class drawn_durations {
 public:
  drawn_durations() = default;
  drawn_durations(std::int64_t from_ns, std::int64_t all_from_ns, std::uint64_t every)
      : from_ns_(from_ns), all_from_ns_(all_from_ns), every_(every) {}

  bool draws_all() const noexcept { return all_from_ns_ == 0; }

  /// Returns whether to draw an interval. The caller must call this once for each interval of a
  /// log, always in the same order, because short intervals are counted to draw every n-th one.
  bool draws(std::int64_t duration_ns) noexcept {
    if (duration_ns >= all_from_ns_) return true;
    return duration_ns >= from_ns_ && seen_++ % every_ == 0;
  }

 private:
  std::int64_t from_ns_ = 0;
  std::int64_t all_from_ns_ = 0;
  std::uint64_t every_ = 1;
  std::uint64_t seen_ = 0;
};

/// Counts intervals by duration, to find how long an interval must be to be drawn if only a limited
/// number of intervals may be drawn.
class longest_drawn {
 public:
  void add(std::int64_t duration_ns) {
    const std::size_t bucket = narrow_bucket::of(duration_ns);
    if (bucket >= counts_.size()) counts_.resize(bucket + 1);
    ++counts_[bucket];
    ++all_;
  }
  void add(const longest_drawn& others) {
    counts_.resize(std::max(counts_.size(), others.counts_.size()));
    for (std::size_t b = 0; b < others.counts_.size(); ++b) counts_[b] += others.counts_[b];
    all_ += others.all_;
  }

  /// Decides which intervals are drawn: the longest, at most `most` of them. Of those that have
  /// about the same duration, some are drawn. If some intervals are not drawn, adds an explanation
  /// to `note`.
  drawn_durations choose(const std::string& what, std::uint64_t most, std::string& note) const {
    if (all_ <= most) return {};
    std::uint64_t drawn = 0;
    std::size_t bucket = counts_.size();
    while (bucket > 0 && drawn + counts_[bucket - 1] <= most) drawn += counts_[--bucket];
    const std::int64_t all_from_ns = narrow_bucket::lowest(bucket);
    const std::uint64_t left = most - drawn;
    const std::uint64_t next = bucket > 0 ? counts_[bucket - 1] : 0;
    note += (note.empty() ? "Of " : " Of ") + std::to_string(all_) + ' ' + what + ' ';
    const bool only_whole = next == 0 || left < next / 100;
    const std::uint64_t every = only_whole ? 1 : next / left + 1;
    if (only_whole) {
      note += std::to_string(drawn) + " are drawn, those that took " + human_time(all_from_ns) +
              " or longer";
    } else {
      note += "about " + std::to_string(drawn + next / every) + " are drawn, the longest";
    }
    note += "; draw a part with lotus-tool viz.";
    if (!only_whole) return {narrow_bucket::lowest(bucket - 1), all_from_ns, every};
    return {all_from_ns, all_from_ns, 1};
  }

 private:
  std::vector<std::uint64_t> counts_;
  std::uint64_t all_ = 0;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_REPORT_TIMELINE_UNDRAWN_SUMS_HPP
