// Tests compact logs: they must give the same lines as text logs. Damage must be reported, and must
// affect only the blocks that cannot be read without the damaged one.
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "log/drained_records.hpp"
#include "lotus/format/compact_layout.hpp"
#include "lotus/lotus.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;
namespace detail = lotus::detail;

namespace {

constexpr const char* log_names[] = {"lotustrace_log_main_pid_7", "lotustrace_log_worker_pid_7",
                                     ".lotus_beside_lotustrace_log_pid_7"};

/// Runs `lotus-tool unpack` on a compact log.
result unpacked(const temp_dir& dir, const std::string& compact, const std::string& more = "") {
  dir.file("in/.lotus_compact_lotustrace_log_pid_7", compact);
  if (!more.empty()) dir.file("in/.lotus_compact_lotustrace_log_pid_7.1", more);
  return run({"unpack", dir.path() + "/in", "-o", dir.path() + "/out"});
}

void check_same(const temp_dir& dir, const std::string (&text)[detail::log_roles]) {
  for (std::size_t i = 0; i < detail::log_roles; ++i) {
    // The comparison is outside of CHECK, because CHECK would print megabytes.
    const bool same = read_file(dir.path() + "/out/" + log_names[i]) == text[i];
    INFO(log_names[i]);
    CHECK(same);
  }
}

}  // namespace

TEST_CASE("unpack writes the same lines that recording as text would have written") {
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    // 3000 names are more than fit into one chain, a series of blocks of which each uses the names
    // in the blocks before it.
    const std::uint32_t names = seed % 3 == 0 ? 3000 : 20;
    const std::vector<detail::record> records = random_records(seed, names, seed % 4 < 2);
    const both recorded = record_both(records, seed % 2 == 0 ? capacity : 37);
    const temp_dir dir;
    INFO("seed " << seed);
    CHECK(unpacked(dir, recorded.compact).status == 0);
    check_same(dir, recorded.text);
  }
}

TEST_CASE("the bytes that are written to logs do not change between releases") {
  // Only kinds of records with a number below 24 are used, because the first release had only
  // these. The expected values are FNV-1a hashes of the logs that this release wrote.
  constexpr std::size_t kinds = 24;
  const auto sum_of = [](const std::string& bytes) {
    std::uint64_t sum = 14695981039346656037U;
    for (const char c : bytes) sum = (sum ^ static_cast<unsigned char>(c)) * 1099511628211U;
    return sum;
  };
  const auto check = [&](const both& recorded, const std::vector<std::uint64_t>& sums) {
    for (std::size_t i = 0; i < detail::log_roles; ++i) CHECK(sum_of(recorded.text[i]) == sums[i]);
    CHECK(sum_of(recorded.compact) == sums[3]);
  };
  check(record_both(random_records(5, 20, true, kinds), 37),
        {0x97785e81b8c17364, 0xe465f5a1f588fed5, 0x71e2e9cf86008ae9, 0x4c8b1019ad6d89f});
  check(record_both(random_records(6, 3000, false, kinds), capacity),
        {0xf42b0d1685c4f65a, 0xc0dc8528d27c7e74, 0xb8be35d1d65c2717, 0xbd4587fb863f01b});
}

TEST_CASE("a failed append leaves nothing behind, and later blocks are complete") {
  const std::vector<detail::record> records = random_records(5, 20);
  for (const int fails : {0, 1, 7}) {
    const both recorded = record_both(records, 500, fails);
    const temp_dir dir;
    CHECK(unpacked(dir, recorded.compact).status == 0);
    check_same(dir, recorded.text);
  }
}

TEST_CASE("an older part of a compact log is read before it, even if it ends within a block") {
  const both recorded = record_both(random_records(6, 20), 1000);
  const temp_dir dir;
  const std::size_t half = recorded.compact.find("LTSC", recorded.compact.size() / 2);
  CHECK(unpacked(dir, recorded.compact.substr(half), recorded.compact.substr(0, half)).status == 0);
  check_same(dir, recorded.text);
}

TEST_CASE("a torn last block is skipped, and damage affects only blocks that need its names") {
  const both recorded = record_both(random_records(7, 20), 100);
  {
    const temp_dir dir;
    const result r = unpacked(dir, recorded.compact.substr(0, recorded.compact.size() - 3));
    CHECK(r.status == 0);
    CHECK(contains(r.err, "incomplete last block ignored"));
  }
  std::string damaged = recorded.compact;
  const std::size_t at = damaged.find("LTSC", damaged.size() / 2);
  damaged[at + 60] ^= 1;
  const temp_dir dir;
  const result r = unpacked(dir, damaged);
  CHECK(r.status == 0);
  CHECK(contains(r.err, "are damaged and ignored"));
  const std::string lines = read_file(dir.path() + "/out/" + log_names[1]);
  CHECK(recorded.text[1].rfind(lines.substr(0, lines.size() / 3), 0) == 0);
  CHECK(lines.size() > recorded.text[1].size() * 2 / 5);
  // A later block begins a new chain, so it needs no names of the damaged block. The end of the log
  // is therefore complete.
  const std::string end = recorded.text[1].substr(recorded.text[1].size() - 2000);
  CHECK(contains(lines, end));
}

TEST_CASE("a block of another version is reported, and a file that is no log causes no crash") {
  const auto [changed_by, reported] = GENERATE(table<int, const char*>(
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
  CHECK(contains(unpacked(dir, other).err, reported));
  const temp_dir copy;
  const result r = unpacked(copy, std::string(100'000, 'L'));
  CHECK(r.status == 1);
  CHECK(contains(r.err, "it contains no valid block"));
}

TEST_CASE("a compact log that is moved gets a successor, and both are read") {
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

TEST_CASE("unpack rejects an output directory that is not empty") {
  const temp_dir dir;
  dir.file("in/lotustrace_log_worker_pid_7", "SCrop,1,2\n");
  dir.file("out/x", "");
  const result r = run({"unpack", dir.path() + "/in", "-o", dir.path() + "/out"});
  CHECK(r.status == 2);
  CHECK(contains(r.err, "is not an empty folder"));
}
