// Tests logs that are moved while they are written, as logrotate does.

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "catch.hpp"
#include "forged_ring.hpp"
#include "lotus/base/fork.hpp"
#include "lotus/engine/engine.hpp"
#include "lotus/lotus.hpp"
#include "recording.hpp"
#include "support.hpp"

namespace {

namespace fs = std::filesystem;

std::uint64_t lines_of(const fs::path& log) {
  const std::string text = support::read_file(log);
  return static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

TEST_CASE("within a second after a log was moved, the library writes to a new log") {
  const support::temp_directory run;
  lotus::start(support::options_for(run));
  const fs::path log = run.prefix() + "_worker_pid_" + std::to_string(lotus::detail::thread_id());
  const auto record = [](int scopes) {
    for (int i = 0; i < scopes; ++i) const lotus::scope work{"rotated"};
    lotus::flush();
  };
  record(10);
  CHECK(lines_of(log) == 10);
  fs::rename(log, log.string() + ".1");
  std::this_thread::sleep_for(std::chrono::seconds(1));
  record(20);
  CHECK(lines_of(log.string() + ".1") == 10);
  CHECK(lines_of(log) == 20);

  // logrotate's option `create` creates a new file with the old name immediately.
  fs::rename(log.string() + ".1", log.string() + ".2");
  fs::rename(log, log.string() + ".1");
  std::ofstream{log} << "";
  std::this_thread::sleep_for(std::chrono::seconds(1));
  record(30);
  lotus::stop();
  CHECK(lines_of(log.string() + ".2") == 10);
  CHECK(lines_of(log.string() + ".1") == 20);
  CHECK(lines_of(log) == 30);
}

TEST_CASE("recovery removes the torn line of a log that was moved") {
  const support::temp_directory run;
  const fs::path log = run.prefix() + "_worker_pid_77";
  const std::string whole = "Swhole,1,1\n";
  std::ofstream{log.string() + ".1"} << whole << "SForged,10,";
  if (GENERATE(false, true)) std::ofstream{log} << "";
  struct stat status {};
  REQUIRE(stat((log.string() + ".1").c_str(), &status) == 0);
  support::forged_ring ring;
  ring.logs[1] = {status.st_ino, whole.size(), true};
  ring.write(run.path() / ".lotus_ring_1_1");

  CHECK(support::recover(run.path()).records == 1);
  CHECK(support::read_file(log.string() + ".1") == whole);
  CHECK(support::read_file(log).rfind("SForged,", 0) == 0);
  CHECK(lines_of(log) == 1);
}
