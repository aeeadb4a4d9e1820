#include "aggregates/data/aggregate_file.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/diagnostics.hpp"
#include "log/folder/log_files.hpp"
#include "log/log_reader.hpp"
#include "log/operation_names.hpp"
#include "lotus/aggregates/aggregate_chain.hpp"

namespace lotus::tool {
namespace {

/// Removes everything up to and including the next `mark` from the front of `text`; removes all of
/// the text if it does not contain the mark. Returns the removed text without the mark.
std::string_view take(std::string_view& text, char mark) {
  const std::size_t at = text.find(mark);
  const std::string_view removed = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return removed;
}

template <class Number>
bool read_number(std::string_view text, Number& value) {
  const char* const end = text.data() + text.size();
  const auto [after_number, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && after_number == end && value >= 0;
}

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
