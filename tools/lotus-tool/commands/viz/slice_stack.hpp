// Converts slices to begin and end events, for formats that write these as separate events.
#ifndef LOTUS_TOOL_COMMANDS_VIZ_SLICE_STACK_HPP
#define LOTUS_TOOL_COMMANDS_VIZ_SLICE_STACK_HPP

#include <algorithm>
#include <cstdint>
#include <vector>

namespace lotus::tool {

/// The open slices of one track. Slices must be added in order of start, the longer first. The
/// functions call `close(end_ns, what)` once for every slice, in order of time. If a slice ends
/// after its parent, it is closed at the parent's end, because formats with separate begin and end
/// events require that slices nest.
template <class What>
class slice_stack {
 public:
  /// Closes the slices that have ended by `start_ns`, and opens a slice. Returns the slice's start,
  /// which is not before the last event written, because the formats require events in order of
  /// time.
  template <class Close>
  std::int64_t open(std::int64_t start_ns, std::int64_t duration_ns, const What& what,
                    Close&& close) {
    close_until(start_ns, close);
    const std::int64_t begin = std::max(start_ns, last_ns_);
    std::int64_t end = std::max(begin, start_ns + duration_ns);
    if (!open_.empty()) end = std::min(end, open_.back().end_ns);
    open_.push_back({end, what});
    last_ns_ = begin;
    return begin;
  }

  template <class Close>
  void close_until(std::int64_t now_ns, Close&& close) {
    while (!open_.empty() && open_.back().end_ns <= now_ns) {
      last_ns_ = std::max(last_ns_, open_.back().end_ns);
      close(last_ns_, open_.back().what);
      open_.pop_back();
    }
  }

  /// Closes all slices, so that the object can be used for the next track.
  template <class Close>
  void finish(Close&& close) {
    close_until(INT64_MAX, close);
    last_ns_ = INT64_MIN;
  }

 private:
  struct opened {
    std::int64_t end_ns;
    What what;
  };
  std::vector<opened> open_;
  std::int64_t last_ns_ = INT64_MIN;  // latest time that was written
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_VIZ_SLICE_STACK_HPP
