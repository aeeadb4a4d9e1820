// One ring's complete records, as lines, to a sink.
#ifndef LOTUS_DRAIN_HPP
#define LOTUS_DRAIN_HPP

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lotus/config.hpp"
#include "lotus/layout.hpp"
#include "lotus/line.hpp"
#include "lotus/writer.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

/// Room for the text of one append.
struct drain_buffer {
  static constexpr std::size_t capacity = std::size_t{128} << 10;
  char text[log_roles][capacity];
  std::size_t bytes[log_roles];
};

/// How far each lane's records were complete at one moment.
struct lane_heads {
  std::uint64_t head[lanes];

  explicit lane_heads(const ring_block& ring) noexcept {
    for (std::size_t i = 0; i < lanes; ++i) {
      head[i] = ring.published[i].load(std::memory_order_acquire);
    }
  }
  /// How many records are complete and not in the logs.
  std::uint64_t beyond(const commit_point& c) const noexcept {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < lanes; ++i) count += head[i] - c.tail[i];
    return count;
  }
};

/// Writes the records between the ring's committed tails and `heads` to `sink`, which commits as it
/// goes: what was appended is never given again.
/// @param heads   read before `clock` was made.
/// @param names   std::string_view operator()(std::uint64_t id): how the line begins, comma
/// included.
/// @param sink    begin(role), append(role, text, bytes) -> errno, undo(role), commit(lane, tail).
/// @return 0, or the errno of the sink; then the rest of the records stays.
template <class Names, class Sink>
int drain_ring(ring_block& ring, const lane_heads& heads, const tick_converter& clock,
               const Names& names, Sink& sink, drain_buffer& buffer) noexcept {
  line_formatter formatter{clock};
  for (std::size_t lane = lanes; lane-- > 0;) {
    std::uint64_t at = ring.committed().tail[lane];
    while (at != heads.head[lane]) {
      buffer.bytes[0] = buffer.bytes[1] = 0;
      for (; at != heads.head[lane]; ++at) {
        const record r = ring.slot(lane, at);
        const auto role = static_cast<std::size_t>(line_formatter::role_of(r.tag.kind()));
        if (drain_buffer::capacity - buffer.bytes[role] < max_line_bytes) break;
        char* out = buffer.text[role] + buffer.bytes[role];
        const std::string_view name =
            r.tag.kind() == event_kind::operation ? names(r.tag.value()) : std::string_view{};
        buffer.bytes[role] =
            static_cast<std::size_t>(formatter.format(r, name, out) - buffer.text[role]);
      }
      for (std::size_t i = 0; i < log_roles; ++i) {
        if (buffer.bytes[i] == 0) continue;
        const auto role = static_cast<log_role>(i);
        int error = sink.begin(role);
        if (error == 0) error = sink.append(role, buffer.text[i], buffer.bytes[i]);
        if (error != 0) {
          for (std::size_t k = 0; k < i; ++k) sink.undo(static_cast<log_role>(k));
          return error;
        }
      }
      sink.commit(lane, at);
    }
  }
  return 0;
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_DRAIN_HPP
