// Tests rotated logs, and logs whose number is not a thread id. The parts must be read as one log,
// and the log must be assigned to the right thread.
#include <zlib.h>

#include <sstream>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "catch.hpp"
#include "log/folder/log_files.hpp"
#include "log/log_line.hpp"
#include "log/log_reader.hpp"
#include "log/process_info.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool;
using lotus::tool_test::temp_dir;

namespace {

std::vector<std::string> names_of(const log_file& file) {
  std::vector<std::string> names;
  std::ostringstream err;
  diagnostic_log diagnostics(err, false);
  read_log(file, &diagnostics, [&](const log_line& line) { names.emplace_back(line.name); });
  return names;
}

std::vector<run_files> find(const temp_dir& dir) {
  std::ostringstream err;
  diagnostic_log diagnostics(err, false);
  return find_runs(dir.path(), default_prefix, diagnostics);
}

}  // namespace

TEST_CASE("rotated logs are read as older parts of the same log") {
  const temp_dir dir;
  const std::string log = "lotustrace_log_worker_pid_5";
  dir.file(log, "Snow,5,1\n");
  dir.file(log + ".1", "Snewer,4,1\n");
  dir.file(log + ".2", "Solder,3,1");  // without a newline at the end
  gzFile packed = gzopen((dir.path() + "/" + log + ".10.gz").c_str(), "wb");
  REQUIRE(packed != nullptr);
  gzputs(packed, "Soldest,1,1\nSsecond,2,1\n");
  gzclose(packed);
  dir.file("other_worker.1", "not a log");
  dir.file("lotustrace_log_worker_pid_6.1", "Sgone,1,1\n");

  const auto runs = find(dir);
  REQUIRE(runs.size() == 1);
  REQUIRE(runs[0].files.size() == 2);
  CHECK(names_of(runs[0].files[0]) ==
        std::vector<std::string>{"Soldest", "Ssecond", "Solder", "Snewer", "Snow"});
  CHECK(runs[0].files[1].number == 6);
  CHECK(names_of(runs[0].files[1]) == std::vector<std::string>{"Sgone"});
}

TEST_CASE("a packed part that unpacks to more than the maximum log size is not read further") {
  const temp_dir dir;
  const std::string path = dir.path() + "/lotustrace_log_worker_pid_5.1.gz";
  const std::string same(std::size_t{1} << 20U, '\n');
  gzFile packed = gzopen(path.c_str(), "wb1");
  REQUIRE(packed != nullptr);
  for (int i = 0; i < 80; ++i) gzwrite(packed, same.data(), static_cast<unsigned>(same.size()));
  gzclose(packed);
  const auto runs = find(dir);
  REQUIRE(runs.size() == 1);
  std::string why;
  try {
    read_log(runs[0].files[0], nullptr, [](const log_line&) {});
  } catch (const lotus::tool::input_error& error) {
    why = error.what();
  }
  CHECK(lotus::tool_test::contains(why,
                                   path + ": reading stopped, because unpacked it is over 64 MiB"));
}

TEST_CASE("a log with another number is assigned to its thread if containers share a directory") {
  const temp_dir dir;
  dir.file(".lotus_info_1_1", "host Sa\npid 1\nthread 1 Smain\n");
  dir.file(".lotus_info_1_2", "host Sb\npid 1\nthread 1 Sother\nlog 5000000 1\n");
  const run_processes processes = run_processes::read(dir.path());
  const process_info* first = processes.process_of(1);
  const process_info* second = processes.process_of(5'000'000);
  REQUIRE(first != nullptr);
  REQUIRE(second != nullptr);
  CHECK(first->host == "a");
  CHECK(second->host == "b");
  CHECK(second->thread_of(5'000'000) == 1);
  CHECK(first->thread_of(1) == 1);
}

TEST_CASE("what a forked process used before its first record counts for the run") {
  for (const bool forked : {true, false}) {
    const temp_dir dir;
    const std::string since = "1796003136";
    dir.file(".lotus_info_7_1", "lotus 0.2.0\npid 7\nparent 5\n" +
                                    std::string(forked ? "forked 5\n" : "") + "cpu_time " + since +
                                    "400000000 30000000 0\ncpu_time " + since +
                                    "500000000 45000000 0\n");
    const std::int64_t began_ns = std::stoll(since) * 1'000'000'000;
    const auto used =
        run_processes::read(dir.path()).cpu_time().between(began_ns, began_ns + 1'000'000'000);
    REQUIRE(used);
    CHECK(*used == Approx(forked ? 45e6 : 15e6));
  }
}
