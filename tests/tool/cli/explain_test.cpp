// Tests that --explain explains every label in tables.
#include <cstddef>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/terminal/line_width.hpp"
#include "base/terminal/table.hpp"
#include "catch.hpp"
#include "cli/cli.hpp"
#include "cli/glossary.hpp"
#include "model/figures.hpp"
#include "tool/thread_logs.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool;
using namespace lotus::tool_test;

namespace {

std::vector<std::string> labels_of(const std::vector<std::string>& arguments) {
  std::vector<const char*> argv{"lotus-tool"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  std::ostringstream out;
  std::ostringstream err;
  const noted_labels labels(out);
  INFO(err.str());
  REQUIRE(run_cli(static_cast<int>(argv.size()), argv.data(), out, err) == 0);
  REQUIRE_FALSE(labels.all().empty());
  return labels.all();
}

/// Writes a run with two stages, a counter and an asynchronous operation.
void write_stages(const temp_dir& dir, const std::string& folder) {
  dir.file(folder + ".lotus_info_1_a", info_of_threads("cpu switches\n"));
  thread_logs read;
  thread_logs decode;
  for (std::int64_t i = 0; i < 30; ++i) {
    read.stage("Read", 10 * i, 10, i);
    decode.stage("Decode", 10 + 20 * i, 20, i);
    decode.off_cpu(10 + 20 * (i + 1), 4, "0");
  }
  read.write(dir, folder, 2);
  decode.write(dir, folder, 3);
}

}  // namespace

TEST_CASE("--explain explains every label in tables") {
  const std::string a = traces() + "/c_ooo_w4";
  const temp_dir dir;
  write_stages(dir, "old/");
  write_stages(dir, "new/");
  const std::string staged = dir.path() + "/old";
  const std::vector<std::vector<std::string>> commands{{"stats", a, "--per-worker"},
                                                       {"stats", a, a},
                                                       {"stats", a, "--style", "profile"},
                                                       {"stats", staged},
                                                       {"diagnose", a, "--details"},
                                                       {"whatif", a},
                                                       {"compare", a, a},
                                                       {"compare", staged, dir.path() + "/new"}};
  for (const std::vector<std::string>& command : commands) {
    for (const std::string& label : labels_of(command)) {
      INFO(command.front() << ": " << label);
      const bool is_run = label == "old" || label == "new" || label == "before" || label == "after";
      CHECK((is_run || !meaning_of(label).empty()));
    }
  }
}

TEST_CASE("--explain explains only the labels that were printed, and leaves JSON unchanged") {
  const std::string a = traces() + "/c_ooo_w4";
  const std::string stats = run({"stats", a, "--explain"}).out;
  CHECK(stats.find(run({"stats", a}).out) == 0);
  CHECK(contains(stats, "\nwhat the labels mean\n"));
  CHECK(contains(stats, "\n  p99: 99 % of the values are at most this\n"));
  CHECK_FALSE(contains(stats, "operation (by gain)"));
  CHECK(contains(run({"diagnose", a, "--details", "--explain"}).out, "\n  operation (by gain): "));
  CHECK(run({"stats", a, "--json", "--explain"}).out == run({"stats", a, "--json"}).out);
  CHECK(meaning_of("nonsense").empty());
  CHECK(meaning_of("count").size() > 5);
  CHECK(meaning_of("CPU time c_ooo_w4").size() > 5);
}

TEST_CASE("all tables show operation names without the S of the logs") {
  const std::string a = traces() + "/c_ooo_w4";
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"stats", a, "--per-worker"},
                                             {"stats", a, "--style", "profile"},
                                             {"diagnose", a},
                                             {"whatif", a},
                                             {"compare", a, a}}) {
    const std::string out = run(command).out;
    INFO(command.front());
    CHECK(contains(out, "Loader"));
    CHECK_FALSE(contains(out, "SLoader"));
  }
  CHECK(contains(run({"stats", a, "--json"}).out, "\"SLoader\""));
}
