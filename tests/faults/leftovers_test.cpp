// Tests files that dead processes left behind: which process may recover them, how running
// processes are recognized, and how long start() waits for a recovery.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "catch.hpp"
#include "forged_ring.hpp"
#include "lotus/lotus.hpp"
#include "support.hpp"

using namespace support;

namespace {

constexpr uid_t somebody = 54'321;
constexpr uid_t somebody_else = 54'322;

}  // namespace

TEST_CASE("start does not wait for a big leftover ring, whose lines are recovered once") {
  const temp_directory run;
  forged_ring big;
  big.capacity = 1U << 22;
  big.records = 3'000'000;
  big.write(run.path() / ".lotus_ring_1_1");
  const int status = in_child([&] {
    forged_ring own;  // the ring of a dead thread whose id was the same as this thread's
    own.tid = static_cast<std::uint32_t>(gettid());
    own.records = 2000;
    own.write(run.path() / ".lotus_ring_2_1");
    const auto before = std::chrono::steady_clock::now();
    if (!lotus::start(noting(run.path()))) return 1;
    const auto took = std::chrono::steady_clock::now() - before;
    const bool recovered = !std::filesystem::exists(run.path() / ".lotus_ring_1_1");
    { LOTUS_SCOPE("Own"); }
    lotus::flush();
    // The lines of this thread must come after those of the dead thread with the same id, even
    // though the library is still recovering the ring `big`.
    const auto lines = read_file(run.path() / worker_log(own.tid));
    if (lines.find("SForged,") == std::string::npos) return 2;
    if (lines.find("SOwn,") < lines.rfind("SForged,")) return 3;
    if (!heard("in the background")) return 4;
    lotus::stop();
    // The recovery takes at least 200 ms and start() must not wait for it. On a busy machine,
    // start() may take as long, but then the recovery takes even longer.
    return took < std::chrono::milliseconds(100) || !recovered ? 0 : 5;
  });
  CHECK(status == 0);
  // Recovers the records that are still in ring files: stop() did not wait until the recovery in
  // the background had ended.
  recover(run.path());
  CHECK(count_files(run.path(), ".lotus_ring_") == 0);
  CHECK(read_logs(run.path()).size() == 3'002'001);
}

TEST_CASE("reading a ring takes no lock, so that recovery still finds the process dead") {
  const temp_directory run;
  forged_ring{}.write(run.path() / ".lotus_ring_1_1");
  const int fd = open(run.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  lotus::detail::dead_ring_file reader;
  REQUIRE(reader.open(fd, ".lotus_ring_1_1", false, {}) ==
          lotus::detail::dead_ring_file::state::opened);
  const auto result = recover(run.path());
  CHECK(result.records == 1);
  CHECK(result.running == 0);
  CHECK(reader.being_recovered());
  close(fd);
}

TEST_CASE("a recovery in progress is not mistaken for a running process") {
  const temp_directory run;
  forged_ring{}.write(run.path() / ".lotus_ring_1_1");
  const int fd = open(run.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  {
    lotus::detail::dead_ring_file other;
    REQUIRE(other.open(fd, ".lotus_ring_1_1", true, lotus::detail::file_owners::of_caller(fd)) ==
            lotus::detail::dead_ring_file::state::opened);
    const auto result = recover(run.path());
    CHECK(result.running == 0);
    CHECK(result.busy == 1);
  }
  CHECK(recover(run.path()).records == 1);
  close(fd);
}

TEST_CASE("start keeps and reports a ring of another version") {
  const temp_directory run;
  std::string bytes = forged_ring{}.bytes();
  ++reinterpret_cast<lotus::detail::ring_file_header*>(bytes.data())->layout;
  std::ofstream{run.path() / ".lotus_ring_1_1", std::ios::binary} << bytes;
  CHECK(recover(run.path()).other_version == 1);
  CHECK(in_child([&] {
          if (record_one(run.path()) != 0) return 1;
          return heard("another version") && heard(".lotus_ring_1_1") ? 0 : 2;
        }) == 0);
  CHECK(fs::exists(run.path() / ".lotus_ring_1_1"));
}

TEST_CASE("new files get the mode that the program chose, or by default that of the umask") {
  const temp_directory run;
  const auto modes = [&](mode_t chosen, mode_t expected) {
    const fs::path folder = run.path() / std::to_string(chosen);
    const int status = in_child([&] {
      umask(022);
      lotus::options o = noting(folder);
      o.file_mode = chosen;
      if (!lotus::start(o)) return 1;
      { LOTUS_SCOPE("One"); }
      LOTUS_COUNTER("Two", 2);
      lotus::flush();
      int files = 0;
      for (const auto& entry : fs::directory_iterator(folder)) {
        struct stat file {};
        if (stat(entry.path().c_str(), &file) != 0) return 2;
        if ((file.st_mode & 07777U) != expected) return 3;
        ++files;
      }
      lotus::stop();
      // The files are the log, the side log, the ring file and the information file. The fifth
      // file, that of the wait samples, is created later and may not exist yet.
      return files == 4 || files == 5 ? 0 : 4;
    });
    CHECK(status == 0);
  };
  modes(0666, 0644);
  modes(0600, 0600);
  modes(0660, 0640);
}

TEST_CASE("recovery as root acts for the owner of the directory only") {
  if (geteuid() != 0) {
    WARN("skipped: needs root");
    return;
  }
  const temp_directory run;
  REQUIRE(chown(run.path().c_str(), somebody, somebody) == 0);
  const auto forge = [&](uid_t owner, mode_t mode) {
    const fs::path ring = run.path() / ".lotus_ring_1_1";
    forged_ring{}.write(ring);
    REQUIRE(chown(ring.c_str(), owner, owner) == 0);
    REQUIRE(chmod(ring.c_str(), mode) == 0);
  };
  const fs::path log = run.path() / worker_log(77);
  struct stat status {};

  SECTION("a log created by root gets the owner and mode of the dead process's ring") {
    forge(somebody, 0640);
    CHECK(in_child([&] {
            umask(077);
            return recover(run.path()).records == 1 ? 0 : 1;
          }) == 0);
    REQUIRE(stat(log.c_str(), &status) == 0);
    CHECK(status.st_uid == somebody);
    CHECK(status.st_gid == somebody);
    CHECK((status.st_mode & 0777U) == 0640);
  }
  SECTION("another user's ring in the directory is not recovered") {
    forge(somebody_else, 0666);
    const auto result = recover(run.path());
    CHECK(result.refused == 1);
    CHECK(!fs::exists(log));
  }
  SECTION("another user's log is not written") {
    forge(somebody, 0644);
    std::ofstream{log} << "";
    REQUIRE(chown(log.c_str(), somebody_else, somebody_else) == 0);
    const auto result = recover(run.path());
    CHECK(result.error == lotus::detail::of_another_user);
    CHECK(fs::file_size(log) == 0);
  }
  SECTION("a user without permission to read the ring gets a refusal") {
    forge(0, 0600);
    CHECK(in_child(
              [&] {
                const auto result = recover(run.path());
                return result.refused == 1 && result.records == 0 ? 0 : 1;
              },
              somebody) == 0);
  }
  SECTION("a running process of another user counts as running") {
    REQUIRE(chmod(run.path().c_str(), 0777) == 0);
    lotus::options o = noting(run.path());
    REQUIRE(lotus::start(o));
    CHECK(in_child(
              [&] {
                const auto result = recover(run.path());
                return result.running == 1 && result.refused == 0 ? 0 : 1;
              },
              somebody) == 0);
    lotus::stop();
  }
}
