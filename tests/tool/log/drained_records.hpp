// Creates records of every kind, and drains them to text logs and to compact logs in memory.
#ifndef LOTUS_TESTS_DRAINED_RECORDS_HPP
#define LOTUS_TESTS_DRAINED_RECORDS_HPP

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "lotus/base/memory.hpp"
#include "lotus/format/compact_filler.hpp"
#include "lotus/format/drain.hpp"
#include "lotus/format/record_kinds.hpp"

namespace lotus::tool_test {

namespace detail = lotus::detail;

inline constexpr std::uint32_t capacity = 1U << 14U;

/// A ring and its logs, all in memory.
class ring_and_logs {
 public:
  ring_and_logs()
      : memory_(detail::ring_block::bytes_for(capacity) / 8 + 8),
        ring_(*new (static_cast<void*>(aligned())) detail::ring_block) {
    ring_.capacity = capacity;
  }
  detail::ring_block& ring() { return ring_; }

  int begin(detail::log_role role, std::uint32_t) {
    position_[at(role)].appending = true;
    return 0;
  }
  int append(detail::log_role role, const char* text, std::size_t bytes) {
    if (fails_-- == 0) return 28;
    logs[at(role)].append(text, bytes);
    added_[at(role)] += bytes;
    return 0;
  }
  void undo(detail::log_role role) {
    logs[at(role)].resize(logs[at(role)].size() - added_[at(role)]);
    added_[at(role)] = 0;
  }
  int commit(std::size_t lane, std::uint64_t tail, std::uint32_t loader) {
    detail::commit_point c = ring_.committed();
    c.tail[lane] = tail;
    c.loader = loader;
    ring_.commit(c);
    for (std::size_t i = 0; i < detail::log_roles; ++i) {
      position_[i].length += added_[i];
      added_[i] = 0;
    }
    return 0;
  }
  const detail::log_position& position(detail::log_role role) const { return position_[at(role)]; }
  void fail_at(int append) { fails_ = append; }

  std::string logs[detail::log_roles];

 private:
  static std::size_t at(detail::log_role role) { return static_cast<std::size_t>(role); }
  char* aligned() {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    return reinterpret_cast<char*>((address + 63) & ~std::uintptr_t{63});
  }

  std::vector<std::uint64_t> memory_;
  detail::ring_block& ring_;
  detail::log_position position_[detail::log_roles] = {{7, 0, false}, {7, 0, false}, {7, 0, false}};
  std::size_t added_[detail::log_roles] = {};
  int fails_ = -1;
};

inline std::string name_of(std::uint64_t id) {
  return "Sname" + std::to_string(id) + "%2C" + std::string(id % 40, 'x') + ',';
}

/// Returns records of all kinds, with small and large numbers, and with times that sometimes step
/// back.
/// @param plain  whether most records are operations.
/// @param kinds  kinds with this number or a larger one are not used.
inline std::vector<detail::record> random_records(std::uint32_t seed, std::uint32_t names,
                                                  bool plain = false,
                                                  std::size_t kinds = detail::record_kind_count) {
  std::mt19937_64 random{seed};
  std::vector<detail::record> records;
  std::uint64_t now = 1'000'000'000'000;
  while (records.size() < capacity - 10) {
    const auto below = [&](std::uint64_t n) { return random() % n; };
    const auto small_or_large = [&] { return below(4) == 0 ? random() >> below(64) : below(100); };
    const bool other = !plain || below(8) == 0;
    const auto kind = static_cast<detail::event_kind>(other ? 1 + below(kinds - 1) : 1);
    if (kind == detail::event_kind::loader) continue;
    now += below(50) == 0 ? below(10'000'000) : below(1000);
    std::uint64_t begin = now - below(below(20) == 0 ? 100'000'000 : 500);
    if (below(200) == 0) begin = small_or_large();
    const detail::record_kind& row = detail::row_of(kind);
    const auto name = static_cast<std::uint32_t>(1 + below(names));
    std::uint64_t value = small_or_large() >> 8U;
    if (row.value == detail::record_value::name) value = name;
    if (row.value == detail::record_value::name_and_number) {
      value = (std::uint64_t{name} << 32U) | (small_or_large() & 0xFFFFFFFFU);
    }
    std::uint64_t end =
        row.duration == detail::written_duration::none ? small_or_large() >> 1U : now;
    if (below(100) == 0 && row.duration != detail::written_duration::none) end = begin + 1000;
    if (kind == detail::event_kind::off_cpu) value >>= 1U;
    records.push_back({begin, end, {kind, value}});
  }
  return records;
}

/// Drains the records to logs in memory, `at_once` records at a time.
template <class Filler>
void drain(ring_and_logs& to, const std::vector<detail::record>& records, Filler& fill,
           std::size_t at_once) {
  for (std::size_t i = 0; i < records.size(); ++i) {
    to.ring().append(records[i]);
    if (i % at_once == at_once - 1 || i + 1 == records.size()) {
      while (detail::drain_ring(to.ring(), detail::lane_heads{to.ring()}, fill, to) != 0) {
      }
    }
  }
}

struct both {
  std::string text[detail::log_roles];
  std::string compact;
};

inline both record_both(const std::vector<detail::record>& records, std::size_t at_once,
                        int fails = -1) {
  static const detail::clock_map clock = [] {
    detail::clock_map map{};
    detail::clock_anchor second{};
    second.ticks = 1'000'000'000;
    second.realtime_ns = 1'000'000'000;
    map.begin(detail::clock_anchor{}, second);
    return map;
  }();
  const detail::tick_converter ticks{clock, nullptr};
  std::map<std::uint64_t, std::string> known;
  const auto names = [&](std::uint64_t id) -> std::string_view {
    return known.try_emplace(id, name_of(id)).first->second;
  };
  auto buffer = std::make_unique<detail::drain_buffer>();
  both result;
  {
    ring_and_logs logs;
    detail::line_filler fill{ticks, names, *buffer};
    drain(logs, records, fill, at_once);
    for (std::size_t i = 0; i < detail::log_roles; ++i) result.text[i] = logs.logs[i];
  }
  ring_and_logs logs;
  logs.fail_at(fails);
  void* const chain = detail::map_memory(sizeof(detail::compact_chain));
  detail::compact_filler fill{ticks, names, *static_cast<detail::compact_chain*>(chain), *buffer};
  drain(logs, records, fill, at_once);
  result.compact = logs.logs[2];
  return result;
}

}  // namespace lotus::tool_test

#endif  // LOTUS_TESTS_DRAINED_RECORDS_HPP
