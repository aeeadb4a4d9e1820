#include "commands/top/consumer_times.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "log/batch_kinds.hpp"
#include "log/log_line.hpp"
#include "log/log_reader.hpp"
#include "log/side_line.hpp"

namespace lotus::tool {
namespace {

/// Maps each batch number to the time at which its first preprocessing began.
using first_begins = std::unordered_map<std::int64_t, std::int64_t>;

/// Calls `each(line)` for every line that begins with `start`.
template <class Each>
void for_each_line_with(std::string_view text, std::string_view start, Each&& each) {
  const std::string after_newline = '\n' + std::string(start);
  std::size_t at = text.substr(0, start.size()) == start ? 0 : text.find(after_newline);
  while (at != std::string_view::npos) {
    if (text[at] == '\n') ++at;
    const std::size_t end = std::min(text.find('\n', at), text.size());
    each(text.substr(at, end - at));
    at = text.find(after_newline, end);
  }
}

void began(first_begins& first, std::int64_t number, std::int64_t start_ns) {
  const auto [at, fresh] = first.try_emplace(number, start_ns);
  if (!fresh) at->second = std::min(at->second, start_ns);
}

/// Returns when the preprocessing of each batch began. The times are those of the spans of whole
/// batches or, if there are none, of the spans of stages.
/// Returns an empty map if batches consist of items, because spans of stages then have the items'
/// numbers.
first_begins first_begins_of(const run_files& run) {
  first_begins first;
  const std::string start(batch_kind_of(record_kind::preprocessed).line_prefix);
  for (const log_file& file : run.files) {
    for_each_line_with(file.tail, start + '_', [&](std::string_view text) {
      log_line line;
      if (parse_line(text, line) == nullptr) began(first, line.batch, line.start_ns);
    });
  }
  if (!first.empty()) return first;
  bool of_items = false;
  for (const log_file& file : run.side_files) {
    const auto start_of = [](event_kind kind) { return lotus::detail::kind_of(kind).side_begin; };
    for_each_line_with(file.tail, start_of(event_kind::batch_takes),
                       [&](std::string_view) { of_items = true; });
    for_each_line_with(file.tail, start_of(event_kind::stage), [&](std::string_view text) {
      side_line line;
      if (parse_line(text, line) == nullptr && line.number() >= 0) {
        began(first, line.number(), line.time_ns);
      }
    });
  }
  return of_items ? first_begins() : first;
}

}  // namespace

consumer_times consumer_times_of(const run_files& run, std::int64_t begin_ns) {
  consumer_times found;
  std::vector<std::int64_t> waits_ended;
  std::int64_t waited_ns = 0;
  std::int64_t first_ns = INT64_MAX;
  std::int64_t last_ns = INT64_MIN;
  for (const log_file& file : run.files) {
    if (file.role == file_role::worker) continue;
    read_log(file, nullptr, [&](const log_line& line) {
      const bool wait = line.kind == record_kind::wait;
      if (!wait && line.kind != record_kind::consumed) return;
      const std::int64_t start_ns = std::max(line.start_ns, begin_ns);
      first_ns = std::min(first_ns, start_ns);
      last_ns = std::max(last_ns, wait ? line.end_ns() : line.start_ns);
      if (!wait) found.received_ns.push_back(line.start_ns);
      if (!wait || line.duration_ns == marker_ns) return;
      waits_ended.push_back(line.end_ns());
      waited_ns += std::max<std::int64_t>(line.end_ns() - start_ns, 0);
    });
  }
  if (found.received_ns.empty()) found.received_ns = waits_ended;
  std::sort(found.received_ns.begin(), found.received_ns.end());
  if (!waits_ended.empty() && last_ns > first_ns) {
    found.wait_share =
        std::min(static_cast<double>(waited_ns) / static_cast<double>(last_ns - first_ns), 1.0);
  }
  return found;
}

void drop_batches_not_preprocessed(run_files& run) {
  const first_begins first = first_begins_of(run);
  if (first.empty()) return;
  for (log_file& file : run.files) {
    if (file.role == file_role::worker) continue;
    std::string kept;
    kept.reserve(file.tail.size());
    std::size_t at = 0;
    while (at < file.tail.size()) {
      const std::size_t end = std::min(file.tail.find('\n', at), file.tail.size() - 1) + 1;
      log_line line;
      const bool read =
          parse_line(std::string_view(file.tail).substr(at, end - 1 - at), line) == nullptr;
      const bool is_reception =
          read && (line.kind == record_kind::wait || line.kind == record_kind::consumed);
      const auto preprocessing = is_reception ? first.find(line.batch) : first.end();
      const bool not_preprocessed =
          is_reception && (preprocessing == first.end() || line.end_ns() < preprocessing->second);
      if (!not_preprocessed) kept.append(file.tail, at, end - at);
      at = end;
    }
    file.tail = std::move(kept);
  }
}

}  // namespace lotus::tool
