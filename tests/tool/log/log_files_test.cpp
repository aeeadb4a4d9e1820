#include "log/folder/log_files.hpp"

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "catch.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool;
using lotus::tool_test::contains;
using lotus::tool_test::temp_dir;

namespace {

std::vector<run_files> find(const std::string& dir, const std::string& prefix = "lotustrace_log") {
  std::ostringstream err;
  diagnostic_log diagnostics(err, false);
  return find_runs(dir, prefix, diagnostics);
}

std::string failure(const std::string& dir) {
  try {
    find(dir);
  } catch (const input_error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("the logs of a run are found, the main log first, then workers by number") {
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_20", "x");
  dir.file("lotustrace_log_worker_pid_3", "xy");
  dir.file("lotustrace_log_main_pid_100", "");
  dir.file("lotustrace_log_worker_pid_7.bak", "");
  dir.file("lotustrace_log_worker_pid_", "");
  dir.file("lotustrace_log_b512_gpu4.log", "");
  dir.file("notes.txt", "");
  dir.file("custom_log_worker_pid_5", "");
  const auto runs = find(dir.path());
  REQUIRE(runs.size() == 1);
  REQUIRE(runs[0].files.size() == 3);
  CHECK(runs[0].files[0].role == file_role::main);
  CHECK(runs[0].files[0].number == 100);
  CHECK(runs[0].files[1].number == 3);
  CHECK(runs[0].files[1].bytes == 2);
  CHECK(runs[0].files[2].number == 20);
  CHECK(runs[0].files[2].role == file_role::worker);
}

TEST_CASE("runs in subdirectories are listed in natural order") {
  const temp_dir dir;
  for (const auto* name : {"b16_gpu1", "b8_gpu10", "b8_gpu2", "deep/er/b1", "empty"}) {
    dir.file(std::string(name) + "/lotustrace_log_main_pid_1", "");
  }
  std::filesystem::remove_all(dir.path() + "/empty/lotustrace_log_main_pid_1");
  std::vector<std::string> found;
  for (const auto& run : find(dir.path())) found.push_back(run.dir.substr(dir.path().size() + 1));
  CHECK(found == std::vector<std::string>{"b8_gpu2", "b8_gpu10", "b16_gpu1", "deep/er/b1"});
}

TEST_CASE("natural order is a strict order") {
  CHECK(natural_less("b8", "b16"));
  CHECK_FALSE(natural_less("b16", "b8"));
  CHECK(natural_less("b", "b1"));
  CHECK(natural_less("a99999999999999999999999", "a100000000000000000000000"));
  CHECK_FALSE(natural_less("b01", "b01"));
  CHECK(natural_less("b01", "b1") != natural_less("b1", "b01"));
}

TEST_CASE("each directory without usable logs is an error of one line") {
  const temp_dir dir;
  CHECK(contains(failure(dir.path() + "/nowhere"), "no such directory"));
  CHECK(contains(failure(dir.file("file", "")), "not a directory"));
  CHECK(contains(failure(dir.path()), "no log found"));
  dir.file("foo_main_pid_8", "");
  CHECK(contains(failure(dir.path()), "did you mean --prefix foo?"));
  CHECK(find(dir.path(), "foo").size() == 1);
}

TEST_CASE("a file name that resembles that of a log is reported") {
  const temp_dir dir;
  dir.file("lotustrace_log_main_pid_1", "");
  dir.file("lotustrace_log_worker_pid_abc", "");
  dir.file("lotustrace_log_b512_gpu4.log", "");
  std::ostringstream err;
  diagnostic_log diagnostics(err, false);
  find_runs(dir.path(), default_prefix, diagnostics);
  CHECK(contains(err.str(), "lotustrace_log_worker_pid_abc: ignored: the name of a log"));
  CHECK_FALSE(contains(err.str(), "gpu4.log"));
}

TEST_CASE("numbers beyond 64 bits are not accepted in the name of a log") {
  CHECK(is_log_name("lotustrace_log_main_pid_18446744073709551615", default_prefix));
  CHECK_FALSE(is_log_name("lotustrace_log_main_pid_18446744073709551616", default_prefix));
  CHECK_FALSE(is_log_name("lotustrace_log_main_pid_-1", default_prefix));
  CHECK_FALSE(is_log_name("lotustrace_log_main_pid_+1", default_prefix));
}

TEST_CASE("the folder of a loader is read like this loader of the whole run") {
  const temp_dir dir;
  dir.file(".lotus_info_7_1", "pid 7\nparent 1\nhost Snode\nthread 7 Smain\n");
  dir.file(".lotus_info_8_1", "pid 8\nparent 7\nhost Snode\n");
  for (const auto* name : {"train", "val"}) {
    dir.file(std::string(name) + "/lotustrace_log_main_pid_7", "SCrop,1000,100\n");
    dir.file(std::string(name) + "/lotustrace_log_worker_pid_8", "SCrop,1000,100\n");
  }
  const std::string folder = dir.path() + "/val";
  for (const std::string& given : {folder, folder + '/'}) {
    const auto runs = find(given);
    REQUIRE(runs.size() == 1);
    CHECK(runs[0].dir == given);
    CHECK(runs[0].loader == "val");
    CHECK(std::filesystem::equivalent(runs[0].info_dir, dir.path()));
    CHECK(runs[0].files.size() == 2);
  }
  CHECK(find(dir.path()).size() == 2);
}

TEST_CASE("a folder below one with files of another program is no loader of that program") {
  const temp_dir dir;
  dir.file(".lotus_info_9_1", "pid 9\nparent 1\nhost Snode\nthread 9 Smain\n");
  dir.file("run/lotustrace_log_main_pid_7", "SCrop,1000,100\n");
  dir.file("other/lotustrace_log_main_pid_9", "SCrop,1000,100\n");
  const auto runs = find(dir.path() + "/run");
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].loader.empty());
  CHECK(runs[0].info_dir == dir.path() + "/run");
}
