// Tests writing and parsing the names of logs and of their parts.
#include "lotus/folder/log_parts.hpp"

#include <cstdint>
#include <cstring>
#include <string>

#include "catch.hpp"
#include "lotus/lotus.hpp"

using lotus::detail::log_name;
using lotus::detail::log_role;

TEST_CASE("parsing a log's file name returns what it was built from") {
  const auto role = GENERATE(log_role::main, log_role::worker, log_role::side);
  const bool compact = GENERATE(false, true);
  const std::uint64_t part =
      GENERATE(std::uint64_t{0}, std::uint64_t{1}, lotus::detail::max_part_ms);
  const std::string prefix = GENERATE(as<std::string>{}, "lotustrace_log", "a_part5", "_main", "x");
  char name[lotus::detail::log_name_bytes];
  lotus::detail::put_log_name(name, sizeof(name), prefix.c_str(), role, compact, 4711, part);
  CAPTURE(name);
  log_name parsed;
  REQUIRE(parsed.parse(name, prefix.c_str()));
  CHECK(parsed.role == role);
  CHECK(parsed.part == part);
  CHECK(parsed.number == 4711);
  CHECK(parsed.compact == (compact && role == log_role::side));
  std::string without = name;
  without.erase(parsed.part_at, parsed.part_length);
  lotus::detail::put_log_name(name, sizeof(name), prefix.c_str(), role, compact, 4711);
  CHECK(without == name);
}

TEST_CASE("other file names are not accepted as logs") {
  log_name parsed;
  for (const char* name :
       {"", "lotustrace_log", "lotustrace_log_main_pid_", "lotustrace_log_main_pid_1x",
        "lotustrace_log_pid_1", "lotustrace_log_part_main_pid_1", "lotustrace_log_part0_main_pid_1",
        "lotustrace_log_part5main_pid_1", "other_main_pid_1", ".lotus_info_1_1",
        ".lotus_compact_other_pid_1", "lotustrace_log_main_pid_1.gz",
        "lotustrace_log_part9223372036854_main_pid_1",
        "lotustrace_log_part999999999999999999999_main_pid_1"}) {
    CAPTURE(name);
    CHECK_FALSE(parsed.parse(name, "lotustrace_log"));
  }
}
