// Compact logs: the same lines as text, whatever the records; damage is told, and costs no more.
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/format/compact_filler.hpp"
#include "lotus/format/drain.hpp"
#include "lotus/lotus.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;
namespace detail = lotus::detail;

namespace {

constexpr std::uint32_t capacity = 1U << 14U;

/// A ring in memory, and its logs likewise.
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

std::string name_of(std::uint64_t id) {
  return "Sname" + std::to_string(id) + "%2C" + std::string(id % 40, 'x') + ',';
}

/// Records of all kinds, with numbers small and large, and times that step back.
/// @param plain  most are operations.
std::vector<detail::record> random_records(std::uint32_t seed, std::uint32_t names,
                                           bool plain = false) {
  std::mt19937_64 random{seed};
  std::vector<detail::record> records;
  std::uint64_t now = 1'000'000'000'000;
  while (records.size() < capacity - 10) {
    const auto below = [&](std::uint64_t n) { return random() % n; };
    const auto small_or_large = [&] { return below(4) == 0 ? random() >> below(64) : below(100); };
    const bool other = !plain || below(8) == 0;
    const auto kind = static_cast<detail::event_kind>(other ? 1 + below(15) : 1);
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

/// What stands in the logs of text, by name, of these records.
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

both record_both(const std::vector<detail::record>& records, std::size_t at_once, int fails = -1) {
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

constexpr const char* log_names[] = {"lotustrace_log_main_pid_7", "lotustrace_log_worker_pid_7",
                                     ".lotus_beside_lotustrace_log_pid_7"};

/// What unpack makes of a compact log.
result unpacked(const temp_dir& dir, const std::string& compact, const std::string& more = "") {
  dir.file("in/.lotus_compact_lotustrace_log_pid_7", compact);
  if (!more.empty()) dir.file("in/.lotus_compact_lotustrace_log_pid_7.1", more);
  return run({"unpack", dir.path() + "/in", "-o", dir.path() + "/out"});
}

void check_same(const temp_dir& dir, const std::string (&text)[detail::log_roles]) {
  for (std::size_t i = 0; i < detail::log_roles; ++i) {
    // Not by CHECK, which would print megabytes.
    const bool same = read_file(dir.path() + "/out/" + log_names[i]) == text[i];
    INFO(log_names[i]);
    CHECK(same);
  }
}

}  // namespace

TEST_CASE("unpack makes the text that recording text would have written, line for line") {
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    const std::uint32_t names = seed % 3 == 0 ? 3000 : 20;  // 3000: more than a chain takes
    const std::vector<detail::record> records = random_records(seed, names, seed % 4 < 2);
    const both recorded = record_both(records, seed % 2 == 0 ? capacity : 37);
    const temp_dir dir;
    INFO("seed " << seed);
    CHECK(unpacked(dir, recorded.compact).status == 0);
    check_same(dir, recorded.text);
  }
}

TEST_CASE("an append that failed leaves nothing, and what follows is whole") {
  const std::vector<detail::record> records = random_records(5, 20);
  for (const int fails : {0, 1, 7}) {
    const both recorded = record_both(records, 500, fails);
    const temp_dir dir;
    CHECK(unpacked(dir, recorded.compact).status == 0);
    check_same(dir, recorded.text);
  }
}

TEST_CASE("an older part of a compact log is read before it, also where it was torn") {
  const both recorded = record_both(random_records(6, 20), 1000);
  const temp_dir dir;
  const std::size_t half = recorded.compact.find("LTSC", recorded.compact.size() / 2);
  CHECK(unpacked(dir, recorded.compact.substr(half), recorded.compact.substr(0, half)).status == 0);
  check_same(dir, recorded.text);
}

TEST_CASE("a torn last block is left out and said; damage costs what needs the block's names") {
  const both recorded = record_both(random_records(7, 20), 100);
  {
    const temp_dir dir;
    const result r = unpacked(dir, recorded.compact.substr(0, recorded.compact.size() - 3));
    CHECK(r.status == 0);
    CHECK(contains(r.err, "torn last block left out"));
  }
  std::string damaged = recorded.compact;
  const std::size_t at = damaged.find("LTSC", damaged.size() / 2);
  damaged[at + 60] ^= 1;
  const temp_dir dir;
  const result r = unpacked(dir, damaged);
  CHECK(r.status == 0);
  CHECK(contains(r.err, "is damaged"));
  const std::string lines = read_file(dir.path() + "/out/" + log_names[1]);
  CHECK(recorded.text[1].rfind(lines.substr(0, lines.size() / 3), 0) == 0);
  CHECK(lines.size() > recorded.text[1].size() * 2 / 5);
  // Chains begin anew: the end is there again.
  const std::string end = recorded.text[1].substr(recorded.text[1].size() - 2000);
  CHECK(contains(lines, end));
}

TEST_CASE("a block of another version is told of, and what is no log is no crash") {
  const auto [changed_by, told] = GENERATE(table<int, const char*>(
      {{1, "a block of a newer lotus"}, {-1, "a block of an older lotus"}}));
  std::string other = record_both(random_records(8, 5), capacity).compact;
  for (std::size_t at = other.find("LTSC"); at != std::string::npos;
       at = other.find("LTSC", at + 1)) {
    detail::compact_block_header header;
    std::memcpy(&header, other.data() + at, sizeof header);
    header.version = static_cast<std::uint8_t>(header.version + changed_by);
    std::memcpy(other.data() + at, &header, sizeof header);
    header.checksum = detail::block_checksum(other.data() + at, header.bytes);
    std::memcpy(other.data() + at, &header, sizeof header);
  }
  const temp_dir dir;
  CHECK(contains(unpacked(dir, other).err, told));
  const temp_dir beside;
  const result r = unpacked(beside, std::string(100'000, 'L'));
  CHECK(r.status == 1);
  CHECK(contains(r.err, "no block in it is whole"));
}

TEST_CASE("a compact log that is moved is followed by a new one; both are read") {
  const temp_dir dir;
  lotus::options chosen;
  chosen.log_file = dir.path() + "/in/lotustrace_log";
  chosen.format = lotus::log_format::compact;
  REQUIRE(lotus::start(chosen));
  const auto record = [](int scopes) {
    for (int i = 0; i < scopes; ++i) LOTUS_SCOPE("Crop");
    lotus::flush();
  };
  record(10);
  const std::string log =
      dir.path() + "/in/.lotus_compact_lotustrace_log_pid_" + std::to_string(gettid());
  std::filesystem::rename(log, log + ".1");
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  record(5);
  lotus::stop();
  CHECK(std::filesystem::exists(log));
  const result r = run({"stats", dir.path() + "/in", "--json"});
  CHECK(parse_json(r.out)["runs"][0]["ops"]["SCrop"]["count"].integer() == 15);
}

TEST_CASE("unpack wants an empty folder") {
  const temp_dir dir;
  dir.file("in/lotustrace_log_worker_pid_7", "SCrop,1,2\n");
  dir.file("out/x", "");
  const result r = run({"unpack", dir.path() + "/in", "-o", dir.path() + "/out"});
  CHECK(r.status == 2);
  CHECK(contains(r.err, "is no empty folder"));
}
