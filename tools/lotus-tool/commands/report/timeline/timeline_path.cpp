#include "commands/report/timeline/timeline_path.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/formats/json_writer.hpp"
#include "commands/report/base64.hpp"
#include "lotus/format/varint.hpp"
#include "model/path/critical_path.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {
namespace {

/// Returns the path's segments that belong to a thread. Successive segments of the same thread and
/// kind are joined.
std::vector<path_segment> thread_segments(const critical_path& path) {
  std::vector<path_segment> joined;
  for (const path_segment& s : path.segments) {
    if (!s.file) continue;
    if (!joined.empty() && joined.back().file == s.file && joined.back().end_ns == s.start_ns &&
        joined.back().kind == s.kind) {
      joined.back().end_ns = s.end_ns;
    } else {
      joined.push_back(s);
    }
  }
  return joined;
}

void keep_longest(std::vector<path_segment>& segments, std::size_t most) {
  std::vector<std::int64_t> durations;
  durations.reserve(segments.size());
  for (const path_segment& s : segments) durations.push_back(s.end_ns - s.start_ns);
  const auto shortest = durations.begin() + static_cast<std::ptrdiff_t>(most);
  std::nth_element(durations.begin(), shortest, durations.end(), std::greater<>());
  const std::int64_t limit_ns = *shortest;
  segments.erase(
      std::remove_if(segments.begin(), segments.end(),
                     [&](const path_segment& s) { return s.end_ns - s.start_ns <= limit_ns; }),
      segments.end());
}

}  // namespace

void write_path_segments(json_writer& json, std::string& text, const run_data& run,
                         const critical_path& path, std::size_t most) {
  std::vector<path_segment> segments = thread_segments(path);
  const std::size_t all = segments.size();
  if (all > most) keep_longest(segments, most);
  json.begin_object().member("left_out", all - segments.size()).key("segments").raw("\"");
  base64_writer bytes(text);
  std::int64_t before_ns = run.first_ns;
  const auto number = [&bytes](std::uint64_t value) {
    bytes.advance_to(lotus::detail::put_varint(bytes.room(), value));
  };
  for (const path_segment& s : segments) {
    number(lotus::detail::to_zigzag(s.start_ns - before_ns));
    number(static_cast<std::uint64_t>(s.end_ns - s.start_ns));
    number(s.file->value());
    before_ns = s.end_ns;
  }
  bytes.finish();
  text += '"';
  json.end_object();
}

}  // namespace lotus::tool
