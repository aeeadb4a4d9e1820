// Tests that dropped records are reported by every command that shows numbers.
#include <filesystem>
#include <string>
#include <vector>

#include "catch.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;
namespace fs = std::filesystem;

namespace {

constexpr const char* reported =
    "1,234,160 of 1,398,000 records were dropped: all numbers cover only the others";
const std::string blank_room(51, ' ');

std::string whole_run() {
  return traces() + "/c_ooo_w4/b8_gpu4";
}

/// Writes a run with dropped records: process 1 has recorded twice, process 3 was killed, and the
/// information file of process 4 is malformed.
std::string lossy_run(const temp_dir& dir) {
  fs::copy(whole_run(), dir.path() + "/run", fs::copy_options::recursive);
  dir.file("run/.lotus_info_1_1",
           "pid 1\nrun one_run\n" + blank_room + "\nrecords 5 7\nrecords 100000 1234000\n");
  dir.file("run/.lotus_info_1_2",
           "pid 1\nrun one_run\nrecords 63000 160                          \n");
  dir.file("run/.lotus_info_2_3", "pid 2\nrun one_run\nrecords 840 0\n");
  dir.file("run/.lotus_info_3_4", "pid 3\nrun one_run\n" + blank_room + "\n");
  dir.file("run/.lotus_info_4_5", "pid 4\nrun one_run\nrecords -1 -1\nrecords 5\nrecords x y\n");
  return dir.path() + "/run";
}

}  // namespace

TEST_CASE("every command warns of dropped records, even with --quiet") {
  const temp_dir dir;
  const std::string lossy = lossy_run(dir);
  const std::string output = dir.path() + "/output";
  const std::vector<std::vector<std::string>> commands = {
      {"stats", lossy},
      {"stats", lossy, "--csv"},
      {"stats", lossy, "--json"},
      {"diagnose", lossy},
      {"viz", lossy, "-o", output},
      {"viz", lossy, "-o", output, "--compat"},
      {"report", lossy, "-o", output},
      {"export", lossy, "--format", "pstats", "-o", output},
      {"whatif", lossy, "--workers", "2"},
      {"compare", lossy, whole_run()}};
  for (std::vector<std::string> command : commands) {
    CAPTURE(command[0], command.back());
    command.emplace_back("--quiet");
    const result r = run(command);
    CHECK(r.status == 0);
    CHECK(r.err == "warning: " + lossy + ": " + reported + '\n');
    command[1] = whole_run();
    CHECK(run(command).err.empty());
  }
  const std::string text_logs = dir.path() + "/text_logs";
  CHECK(run({"unpack", lossy, "-o", text_logs, "--quiet"}).err ==
        "warning: " + lossy + ": " + reported + '\n');
  CHECK(run({"stats", text_logs, "--quiet"}).err ==
        "warning: " + text_logs + ": " + reported + '\n');
  // `top` breaks the line at the width of the screen.
  CHECK(contains(run({"top", lossy, "--once"}).out, "1,234,160 of 1,398,000 records were dropped"));
  CHECK(run({"compare", lossy, lossy, "--quiet"}).err ==
        "warning: " + lossy + ": " + reported + '\n');
}

TEST_CASE("JSON and the report page contain the number of dropped records, if there are any") {
  const temp_dir dir;
  const std::string lossy = lossy_run(dir);
  const std::string whole = whole_run();
  const auto stats = parse_json(run({"stats", lossy, whole, "--json"}).out);
  CHECK(stats["runs"][0]["dropped"].number() == 1234160);
  CHECK(stats["runs"][0]["recorded"].number() == 1398000);
  CHECK_FALSE(contains(run({"stats", whole, "--json"}).out, "\"dropped\""));
  const auto verdict = parse_json(run({"diagnose", lossy, "--json"}).out);
  CHECK(verdict["dropped"].number() == 1234160);
  CHECK(verdict["recorded"].number() == 1398000);
  CHECK_FALSE(contains(run({"diagnose", whole, "--json"}).out, "\"dropped\""));
  const auto compared = parse_json(run({"compare", whole, lossy, "--json"}).out);
  CHECK(compared["dropped_before"].number() == 0);
  CHECK(compared["dropped_after"].number() == 1234160);
  CHECK(compared["recorded_after"].number() == 1398000);
  CHECK_FALSE(contains(run({"compare", whole, whole, "--json"}).out, "\"dropped"));
  const std::string page = dir.path() + "/page.html";
  REQUIRE(run({"report", lossy, "-o", page}).status == 0);
  CHECK(contains(read_file(page), reported));
  REQUIRE(run({"report", whole, "-o", page}).status == 0);
  CHECK_FALSE(contains(read_file(page), "records were dropped"));
}
