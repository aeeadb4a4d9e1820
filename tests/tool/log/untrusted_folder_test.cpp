// Tests a folder to which other users can write: no command may follow a link in it or wait for a
// pipe, and each must report what it could not open.

#include <sys/stat.h>
#include <unistd.h>

#include <sstream>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "catch.hpp"
#include "forged_ring.hpp"
#include "log/folder/log_files.hpp"
#include "log/folder/lost_records.hpp"
#include "lotus/lotus.hpp"
#include "support.hpp"
#include "tool/tool_test.hpp"

using namespace support;
using lotus::tool_test::contains;

namespace {

constexpr char one_batch[] = "SLoader,1000000000,500\nSBatchPreprocessed_0,1000000000,900\n";
constexpr char one_wait[] = "SBatchWait_0,1000000100,2000\nSBatchConsumed_0,1000002100,1000\n";

void write_run(const fs::path& dir) {
  std::ofstream{dir / "lotustrace_log_worker_pid_8"} << one_batch;
  std::ofstream{dir / "lotustrace_log_main_pid_7"} << one_wait;
}

}  // namespace

TEST_CASE("no command waits for a pipe or follows a link to a device") {
  const bool pipes = GENERATE(true, false);
  const temp_directory run;
  write_run(run.path());
  for (const char* name : {".lotus_new_1_1", ".lotus_ring_1_1", ".lotus_info_1_1",
                           ".lotus_samples_1_1", "lotustrace_log_worker_pid_9", "trace.json"}) {
    const fs::path path = run.path() / name;
    if (pipes) {
      REQUIRE(mkfifo(path.c_str(), 0666) == 0);
    } else {
      fs::create_symlink("/dev/zero", path);
    }
  }
  const std::string dir = run.path().string();
  const std::vector<std::vector<std::string>> commands = {
      {"stats", dir},       {"diagnose", dir}, {"viz", dir, "-o", "-"},
      {"map", "join", dir}, {"recover", dir},
  };
  for (const auto& command : commands) {
    CAPTURE(command[0], pipes);
    const int status = in_child([&] {
      const lotus::tool_test::result result = lotus::tool_test::run(command);
      if (command[0] == "recover") {
        return result.status == 1 && contains(result.err, ".lotus_ring_1_1") ? 0 : 1;
      }
      if (command[0] == "map") return 0;  // the command may fail, because there may be no samples
      return result.status == 0 && contains(result.err, "lotustrace_log_worker_pid_9") ? 0 : 2;
    });
    CHECK(status == 0);
  }
}

TEST_CASE("a log that is a link to another file is not read") {
  const temp_directory run;
  const temp_directory outside;
  write_run(run.path());
  std::ofstream{outside.path() / "secret"} << "SSecret,1000000000,500\n";
  fs::create_symlink(outside.path() / "secret", run.path() / "lotustrace_log_worker_pid_9");
  const lotus::tool_test::result stats =
      lotus::tool_test::run({"stats", run.path().string(), "--json"});
  CHECK(stats.status == 0);
  CHECK(!contains(stats.out, "SSecret"));
  CHECK(contains(stats.err, "worker_pid_9"));
  // The path of the folder itself may be a link, because the user has given it.
  fs::create_directory_symlink(run.path(), outside.path() / "run");
  CHECK(lotus::tool_test::run({"stats", (outside.path() / "run").string()}).status == 0);
}

TEST_CASE("recover does not enter a directory that is a link") {
  const temp_directory run;
  const temp_directory outside;
  forged_ring{}.write(outside.path() / ".lotus_ring_1_1");
  fs::create_directory_symlink(outside.path(), run.path() / "sub");
  const lotus::tool_test::result result = lotus::tool_test::run({"recover", run.path().string()});
  CHECK(contains(result.out, "recovered 0 records"));
  CHECK(fs::exists(outside.path() / ".lotus_ring_1_1"));
}

TEST_CASE("recover fails if rings cannot be recovered, and stats continues") {
  const temp_directory run;
  write_run(run.path());
  std::string bytes = forged_ring{}.bytes();
  ++reinterpret_cast<layout::ring_file_header*>(bytes.data())->layout;
  for (const char* name : {".lotus_ring_1_1", ".lotus_ring_2_1", ".lotus_ring_3_1"}) {
    std::ofstream{run.path() / name, std::ios::binary} << bytes;
  }
  const lotus::tool_test::result recover = lotus::tool_test::run({"recover", run.path().string()});
  CHECK(recover.status == 1);
  CHECK(contains(recover.err, ".lotus_ring_"));
  CHECK(contains(recover.err, "and 2 more: written by another version"));
  const lotus::tool_test::result stats = lotus::tool_test::run({"stats", run.path().string()});
  CHECK(stats.status == 0);
  CHECK(contains(stats.err, "by another version"));
}

TEST_CASE("recover keeps a damaged ring and says what to do with it") {
  const temp_directory run;
  std::ofstream{run.path() / ".lotus_ring_1_1"} << std::string(8192, 'x');
  const lotus::tool_test::result recover = lotus::tool_test::run({"recover", run.path().string()});
  CHECK(recover.status == 1);
  CHECK(contains(recover.err,
                 ".lotus_ring_1_1: not a ring file, or damaged: it cannot be read and may be "
                 "deleted; left as it is"));
  CHECK(fs::exists(run.path() / ".lotus_ring_1_1"));
}

TEST_CASE("recover fails with a reason for other users' rings, and stats reads what it may") {
  if (geteuid() != 0) {
    WARN("skipped: needs root");
    return;
  }
  const temp_directory run;
  REQUIRE(chmod(run.path().c_str(), 0755) == 0);
  write_run(run.path());
  forged_ring{}.write(run.path() / ".lotus_ring_1_1");
  REQUIRE(chmod((run.path() / ".lotus_ring_1_1").c_str(), 0600) == 0);
  constexpr uid_t somebody = 54'321;
  CHECK(in_child(
            [&] {
              const lotus::tool_test::result result =
                  lotus::tool_test::run({"recover", run.path().string()});
              return result.status == 1 && contains(result.err, ".lotus_ring_1_1") &&
                             contains(result.err, "Permission denied")
                         ? 0
                         : 1;
            },
            somebody) == 0);
  CHECK(in_child(
            [&] {
              const lotus::tool_test::result result =
                  lotus::tool_test::run({"stats", run.path().string()});
              return result.status == 0 && contains(result.err, "Permission denied") ? 0 : 1;
            },
            somebody) == 0);
  // Only the owner can open this folder.
  fs::create_directory(run.path() / "closed");
  REQUIRE(chmod((run.path() / "closed").c_str(), 0700) == 0);
  fs::remove(run.path() / ".lotus_ring_1_1");
  CHECK(in_child(
            [&] {
              const lotus::tool_test::result result =
                  lotus::tool_test::run({"recover", run.path().string()});
              return result.status == 1 && contains(result.err, "closed: cannot be read") ? 0 : 1;
            },
            somebody) == 0);
}

TEST_CASE("recover does not mistake another recovery for a running process") {
  const temp_directory run;
  forged_ring{}.write(run.path() / ".lotus_ring_1_1");
  const int fd = open(run.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  lotus::detail::dead_ring_file other;
  REQUIRE(other.open(fd, ".lotus_ring_1_1", true, lotus::detail::file_owners::of_caller(fd)) ==
          lotus::detail::dead_ring_file::state::opened);
  const lotus::tool_test::result result = lotus::tool_test::run({"recover", run.path().string()});
  CHECK(!contains(result.out, "still recording"));
  CHECK(contains(result.out, "being recovered by another command"));
  close(fd);
}

TEST_CASE("forged information files are ignored, which is reported once") {
  const bool many = GENERATE(true, false);
  const temp_directory run;
  write_run(run.path());
  std::ofstream{run.path() / ".lotus_info_7_1"} << "host Shere\npid 7\nrecords 3 1\n";
  if (many) {
    const std::string line = "thread 1 S\n";
    std::string lines;
    while (lines.size() < (std::size_t{4} << 20U)) lines += line;
    for (int i = 0; i < 8; ++i) {
      std::ofstream{run.path() / (".lotus_info_8_" + std::to_string(i))} << lines;
    }
  } else {
    for (int i = 0; i < 500; ++i) {
      const fs::path path = run.path() / (".lotus_info_8_" + std::to_string(i));
      std::ofstream{path} << "pid 8\n";
      fs::resize_file(path, std::uint64_t{1} << 33U);
    }
  }
  const int status = in_child([&] {
    const lotus::tool_test::result stats = lotus::tool_test::run({"stats", run.path().string()});
    if (stats.status != 0) return 1;
    if (!contains(stats.err, "1 of 4 records were dropped")) return 2;
    const std::string left = many ? "6 .lotus_info_ files are not, or not wholly, read"
                                  : "500 .lotus_info_ files are not, or not wholly, read";
    const std::size_t at = stats.err.find(left);
    return at != std::string::npos &&
                   stats.err.find("wholly", at + left.size()) == std::string::npos
               ? 0
               : 3;
  });
  CHECK(status == 0);
}

TEST_CASE("records in rings are included only up to a limit on memory") {
  const temp_directory run;
  write_run(run.path());
  forged_ring big;
  big.records = 8000;
  big.write(run.path() / ".lotus_ring_1_1");
  big.tid = 78;
  big.write(run.path() / ".lotus_ring_2_1");
  std::ostringstream err;
  lotus::tool::diagnostic_log diagnostics(err, false);
  lotus::tool::logs_by_folder files;
  lotus::tool::count_in_lost_records(run.path().string(), "lotustrace_log", files, diagnostics,
                                     1000);
  std::size_t bytes = 0;
  for (const auto& file : files[run.path().string()]) bytes += file.tail.size();
  CHECK(bytes > 1000);
  // The tool must have stopped after one portion, the amount that it reads from a ring in one call.
  CHECK(bytes < 4096 * 40);
  CHECK(contains(err.str(), "has more records than are counted; `lotus-tool recover`"));
}
