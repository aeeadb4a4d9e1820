// Writes the completely stored records of one ring to a sink, usually the logs of the ring's
// thread.
#ifndef LOTUS_FORMAT_DRAIN_HPP
#define LOTUS_FORMAT_DRAIN_HPP

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lotus/config.hpp"
#include "lotus/folder/log_appender.hpp"
#include "lotus/format/line.hpp"
#include "lotus/format/record_kinds.hpp"
#include "lotus/record/ring_layout.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// For each log of a thread, the bytes of one append: lines of text, or a block of a compact log.
struct drain_buffer {
  static constexpr std::size_t capacity = max_append_bytes;
  char text[log_roles][capacity];
  std::size_t bytes[log_roles];
};

/// For each lane (circular buffer of a ring): how many records the thread had completely stored at
/// one moment. A drain writes only records before that position.
struct lane_heads {
  std::uint64_t head[lanes];

  explicit lane_heads(const ring_block& ring) noexcept {
    for (std::size_t i = 0; i < lanes; ++i) {
      head[i] = ring.published[i].load(std::memory_order_acquire);
    }
  }
  /// Returns the number of records that the thread has completely stored but that are not in the
  /// logs yet.
  std::uint64_t beyond(const commit_point& c) const noexcept {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < lanes; ++i) count += head[i] - c.tail[i];
    return count;
  }
};

/// Copies the records of `from` that are not in the logs yet, up to `heads`, to the same positions
/// of `to`, an unused ring of the same capacity.
inline void copy_records(ring_block& from, const lane_heads& heads, ring_block& to) noexcept {
  commit_point c = from.committed();
  // The positions of the logs and the count of records in memory are stored only in the original
  // ring.
  for (log_position& log : c.logs) log = {0, 0, false, log.number, 0};
  c.in_memory = 0;
  to.commit(c);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    for (std::uint64_t at = c.tail[lane]; at != heads.head[lane]; ++at) {
      to.slot(lane, at) = from.slot(lane, at);
    }
    to.published[lane].store(heads.head[lane], std::memory_order_relaxed);
  }
}

/// Marks the records before `heads` as written or copied, so that the thread can overwrite them.
/// @param in_memory  number of these records that are now in memory and not in the logs.
inline void skip_records(ring_block& ring, const lane_heads& heads,
                         std::uint64_t in_memory = 0) noexcept {
  commit_point c = ring.committed();
  c.in_memory += static_cast<std::uint32_t>(in_memory);
  for (std::uint64_t at = c.tail[0]; at != heads.head[0]; ++at) {
    const record_tag tag = ring.slot(0, at).tag;
    if (tag.kind() == event_kind::loader) c.loader = static_cast<std::uint32_t>(tag.value());
  }
  for (std::size_t lane = 0; lane < lanes; ++lane) c.tail[lane] = heads.head[lane];
  ring.commit(c);
}

/// Formats records as the lines of text logs, in a buffer.
/// @param names   std::string_view operator()(std::uint64_t id): returns the beginning of a line,
/// "S<name>,", for the id of a name.
template <class Names>
class line_filler {
 public:
  line_filler(const tick_converter& clock, const Names& names, drain_buffer& buffer) noexcept
      : formatter_{clock}, names_{names}, buffer_{buffer} {}

  template <class Sink>
  int begin(Sink&, std::uint32_t) noexcept {
    for (std::size_t& bytes : buffer_.bytes) bytes = 0;
    return 0;
  }

  /// Adds no records, so drain_ring() passes all of them to add(): only compact_filler has a faster
  /// path for operations.
  static std::uint64_t add_operations(ring_block&, std::size_t, std::uint64_t at,
                                      std::uint64_t) noexcept {
    return at;
  }

  /// Adds the lines of a record to the buffer. Returns false if they may not fit in the buffer.
  LOTUS_DETAIL_ALWAYS_INLINE bool add(const record& r) noexcept {
    const record_kind& kind = kind_of(r.tag);
    const auto role = static_cast<std::size_t>(kind.role);
    if (drain_buffer::capacity - buffer_.bytes[role] < max_line_bytes) return false;
    const std::string_view name =
        has_name(kind) ? names_(name_of(kind, r.tag)) : std::string_view{};
    if (LOTUS_DETAIL_UNLIKELY(!kind.side_begin.empty())) {
      if (!add_side_log(r, name)) return false;
      if (kind.role == log_role::side) return true;
    }
    char* const out = buffer_.text[role] + buffer_.bytes[role];
    buffer_.bytes[role] =
        static_cast<std::size_t>(formatter_.format(r, name, out) - buffer_.text[role]);
    return true;
  }

  /// Appends the buffer's contents to the sink (the logs). Returns 0, or the sink's error; after an
  /// error, the log contains none of the bytes that were being appended to it.
  template <class Sink>
  int append(Sink& sink, std::uint32_t loader) noexcept {
    for (std::size_t i = 0; i < log_roles; ++i) {
      if (buffer_.bytes[i] == 0) continue;
      const auto role = static_cast<log_role>(i);
      int error = sink.begin(role, loader);
      if (error == 0) error = sink.append(role, buffer_.text[i], buffer_.bytes[i]);
      if (error == 0) continue;
      for (std::size_t k = 0; k < i; ++k) sink.undo(static_cast<log_role>(k));
      return error;
    }
    return 0;
  }

  template <class Sink>
  void committed(const Sink&) noexcept {}
  void failed() noexcept {}

 private:
  LOTUS_DETAIL_COLD bool add_side_log(const record& r, std::string_view name) noexcept {
    constexpr auto side = static_cast<std::size_t>(log_role::side);
    if (drain_buffer::capacity - buffer_.bytes[side] < max_line_bytes) return false;
    char* const out = buffer_.text[side] + buffer_.bytes[side];
    buffer_.bytes[side] =
        static_cast<std::size_t>(formatter_.format_side_line(r, name, out) - buffer_.text[side]);
    return true;
  }

  line_formatter formatter_;
  const Names& names_;
  drain_buffer& buffer_;
};

/// Writes the ring's records that are not in the logs yet, up to `heads`, to `sink`. After each
/// append, the sink stores in the ring that these records are written, so no record is written
/// twice.
/// @param heads  positions up to which records are written. They must have been read before the
///   tick_converter of `fill` was constructed.
/// @param fill   a line_filler or a compact_filler, called in this order: begin(sink, loader), then
///   add(record) until it returns false, or add_operations(ring, lane, from, to), which returns the
///   position that it reached, then append(sink, loader), then committed(sink) or failed().
/// @param sink   has begin(role, loader), append(role, text, bytes), undo(role), commit(lane, tail,
///   loader) and position(role). All but undo and position return 0 or an error that
///   file_error_text() can describe. A loader is the id of its name, 0 the default loader.
/// @return 0, or the error of the sink; then the remaining records stay in the ring.
template <class Filler, class Sink>
int drain_ring(ring_block& ring, const lane_heads& heads, Filler& fill, Sink& sink) noexcept {
  for (std::size_t lane = lanes; lane-- > 0;) {
    std::uint64_t at = ring.committed().tail[lane];
    while (at != heads.head[lane]) {
      std::uint32_t loader = ring.committed().loader;
      // A loader record selects the loader of the records after it. It counts only in lane 0: lane
      // 1 contains records of signal handlers that interrupted the thread while it stored a record.
      const auto enters = [&](const record& r) {
        return lane == 0 && r.tag.kind() == event_kind::loader;
      };
      for (; at != heads.head[lane] && enters(ring.slot(lane, at)); ++at) {
        loader = static_cast<std::uint32_t>(ring.slot(lane, at).tag.value());
      }
      if (at == heads.head[lane]) return sink.commit(lane, at, loader);
      if (const int error = fill.begin(sink, loader); error != 0) return error;
      for (;; ++at) {
        at = fill.add_operations(ring, lane, at, heads.head[lane]);
        if (at == heads.head[lane]) break;
        const record& r = ring.slot(lane, at);
        if (LOTUS_DETAIL_UNLIKELY(r.tag.kind() == event_kind::loader)) {
          if (lane == 0) break;
        } else if (!fill.add(r)) {
          break;
        }
      }
      int error = fill.append(sink, loader);
      if (error == 0) error = sink.commit(lane, at, loader);
      if (error != 0) {
        fill.failed();
        return error;
      }
      fill.committed(sink);
    }
  }
  return 0;
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_FORMAT_DRAIN_HPP
