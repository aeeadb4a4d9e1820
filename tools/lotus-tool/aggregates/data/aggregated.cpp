#include "aggregates/data/aggregated.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "log/log_reader.hpp"
#include "log/operation_names.hpp"
#include "lotus/aggregates/aggregate_chain.hpp"

namespace lotus::tool {
namespace {

/// Adds two numbers; the result is limited to what 64 bits can represent.
void add(std::int64_t& to, std::int64_t n) {
  if (__builtin_add_overflow(to, n, &to)) to = std::numeric_limits<std::int64_t>::max();
}

/// Returns the duration with index `rank` in ascending order; the shortest has index 0.
double at_rank(const std::vector<duration_bucket>& durations, std::uint64_t rank) {
  for (const duration_bucket& d : durations) {
    if (rank < d.count) return d.ns;
    rank -= d.count;
  }
  return durations.back().ns;
}

/// Returns a percentile of the durations of an operation's calls. Interpolates between two
/// durations, as is done for operations whose calls were recorded.
double percentile(const aggregated_op& op, double share) {
  const double position = share * static_cast<double>(op.count - 1);
  const auto below = static_cast<std::uint64_t>(position);
  const double low = at_rank(op.durations, below);
  return low + (position - static_cast<double>(below)) * (at_rank(op.durations, below + 1) - low);
}

}  // namespace

std::vector<aggregated_op> read_aggregated(const run_files& run, diagnostic_log& diagnostics) {
  std::map<std::string, aggregated_op> by_name;
  for (const log_file& file : run.aggregated) {
    for (const thread_aggregate& part : read_aggregates(file, diagnostics)) {
      aggregated_op& op = by_name[part.name];
      op.name = part.name;
      op.count += part.count;
      add(op.total_ns, part.total_ns);
      add(op.self_ns, part.self_ns);
      op.durations.insert(op.durations.end(), part.durations.begin(), part.durations.end());
    }
  }
  std::vector<aggregated_op> ops;
  for (auto& [name, op] : by_name) {
    std::sort(op.durations.begin(), op.durations.end(),
              [](const auto& a, const auto& b) { return a.ns < b.ns; });
    ops.push_back(std::move(op));
  }
  std::stable_sort(ops.begin(), ops.end(),
                   [](const auto& a, const auto& b) { return a.total_ns > b.total_ns; });
  return ops;
}

distribution describe(const aggregated_op& op) {
  distribution d;
  d.count = static_cast<std::size_t>(op.count);
  if (op.durations.empty()) return d;
  const auto n = static_cast<double>(op.count);
  d.total_ns = op.total_ns;
  d.mean_ns = static_cast<double>(op.total_ns) / n;
  d.min_ns = std::llround(op.durations.front().ns);
  d.max_ns = std::llround(op.durations.back().ns);
  double squares = 0;
  for (const duration_bucket& b : op.durations) {
    squares += static_cast<double>(b.count) * (b.ns - d.mean_ns) * (b.ns - d.mean_ns);
  }
  d.std_ns = std::sqrt(squares / n);
  d.p25_ns = percentile(op, 0.25);
  d.p50_ns = percentile(op, 0.50);
  d.p75_ns = percentile(op, 0.75);
  d.p90_ns = percentile(op, 0.90);
  d.p99_ns = percentile(op, 0.99);
  return d;
}

double share_below(const aggregated_op& op, std::int64_t limit_ns) {
  std::uint64_t below = 0;
  for (const duration_bucket& b : op.durations) {
    if (b.ns < static_cast<double>(limit_ns)) below += b.count;
  }
  return op.count == 0 ? 0 : static_cast<double>(below) / static_cast<double>(op.count);
}

std::string no_window_text(const std::vector<aggregated_op>& ops) {
  return std::to_string(ops.size()) +
         (ops.size() == 1 ? " aggregated operation has" : " aggregated operations have") +
         " no times, so they are not drawn, and no window can be cut out of them; `stats` shows "
         "them, "
         "always for the whole run";
}

namespace {

/// Reads a line "S<name>,TID,COUNT,TOTAL,SELF,BUCKET:N BUCKET:N" (an aggregate). Returns false for
/// other lines.
bool read_aggregate(std::string_view line, double ns_per_tick, thread_aggregate& to) {
  to.name = decode_name(take(line, ','));  // a name "S" stands for an operation whose name is empty
  if (to.name.empty() || !read_number(take(line, ','), to.tid) ||
      !read_number(take(line, ','), to.count) || !read_number(take(line, ','), to.total_ns) ||
      !read_number(take(line, ','), to.self_ns) || to.self_ns > to.total_ns) {
    return false;
  }
  std::uint64_t sum = 0;
  std::uint64_t least = 0;
  while (!line.empty()) {
    std::string_view field = take(line, ' ');
    std::uint64_t bucket = 0;
    duration_bucket calls;
    if (!read_number(take(field, ':'), bucket) || !read_number(field, calls.count) ||
        bucket >= std::uint64_t{lotus::detail::octaves} * lotus::detail::octave_buckets ||
        bucket < least || __builtin_add_overflow(sum, calls.count, &sum)) {
      return false;
    }
    least = bucket + 1;
    const auto number = static_cast<std::uint32_t>(bucket);
    calls.ns = (static_cast<double>(lotus::detail::bucket_begin(number)) +
                static_cast<double>(lotus::detail::bucket_width(number) - 1) / 2) *
               ns_per_tick;
    to.durations.push_back(calls);
  }
  return sum == to.count && sum > 0;
}

class section_reader {
 public:
  section_reader(const log_file& file, diagnostic_log& diagnostics)
      : file_(file), diagnostics_(diagnostics) {}

  void take_line(std::string_view line) {
    ++number_;
    if (line.empty()) return;
    if (line.front() == 'S') {
      thread_aggregate one;
      if (!name_.empty() && read_aggregate(line, ns_per_tick_, one)) {
        section_.push_back(std::move(one));
      } else {
        diagnostics_.malformed(file_.path, number_,
                               "not an aggregate: expected S<name>,TID,COUNT,TOTAL,...");
        broken_ = true;
      }
      return;
    }
    const std::string_view word = take(line, ',');
    const std::string name(take(line, ','));
    std::uint64_t value = 0;
    const bool good = !name.empty() && read_number(line, value);
    if (good && word == "begin" && value > 0) {
      leave_section();
      name_ = name;
      ns_per_tick_ = static_cast<double>(value) / 4294967296.0;
    } else if (good && word == "end" && name == name_ && (value == section_.size() || broken_)) {
      sections_[name_] = std::move(section_);
      section_ = {};
      name_.clear();
    } else {
      diagnostics_.malformed(file_.path, number_, "neither a section's begin nor its end");
    }
  }

  std::vector<thread_aggregate> finish() {
    leave_section();
    diagnostics_.end_of_file(file_.path);
    std::vector<thread_aggregate> all;
    for (auto& [name, section] : sections_) {
      for (thread_aggregate& one : section) all.push_back(std::move(one));
    }
    return all;
  }

 private:
  /// Discards an incomplete section. A process leaves such a section in the file if it is killed
  /// while it writes. The sums are not lost, because the process's ring file still contains them.
  void leave_section() {
    if (!name_.empty()) diagnostics_.note(file_.path + ": an incomplete section ignored");
    section_ = {};
    name_.clear();
    broken_ = false;
  }

  const log_file& file_;
  diagnostic_log& diagnostics_;
  std::uint64_t number_ = 0;
  std::string name_;  // name of the open section; "" if none is open
  double ns_per_tick_ = 0;
  bool broken_ = false;
  std::vector<thread_aggregate> section_;
  std::map<std::string, std::vector<thread_aggregate>> sections_;
};

}  // namespace

std::vector<thread_aggregate> read_aggregates(const log_file& file, diagnostic_log& diagnostics) {
  section_reader sections(file, diagnostics);
  block_reader blocks(file);
  for (std::string_view block = blocks.next(); !block.empty(); block = blocks.next()) {
    while (!block.empty()) sections.take_line(take(block, '\n'));
  }
  return sections.finish();
}

}  // namespace lotus::tool
