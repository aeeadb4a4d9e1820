// Tests children of programs with several threads. ThreadSanitizer kills such a child if it starts
// a thread, so the library must not.

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "recording.hpp"
#include "support.hpp"

using support::count_named;
using support::options_for;
using support::read_logs;

namespace {

/// Forks while another thread runs. Returns the child's status.
template <class Body>
int status_of_threaded_child(Body&& body) {
  std::atomic<bool> ended{false};
  std::thread other{[&] {
    while (!ended) {
      LOTUS_SCOPE("of_other");
      usleep(1000);
    }
  }};
  usleep(10'000);
  const int status = support::status_of_child(body);
  ended = true;
  other.join();
  return status;
}

}  // namespace

TEST_CASE("a child of a threaded program records and ends, also with ThreadSanitizer") {
  const support::temp_directory run;
  REQUIRE(lotus::start(options_for(run)));
  const int status = status_of_threaded_child([] {
    for (int i = 0; i < 1000; ++i) LOTUS_SCOPE("of_child");
    lotus::stop();
    _exit(0);
  });
  lotus::stop();
  CHECK(status == 0);
  CHECK(count_named(read_logs(run.path()), "Sof_child") == 1000);
}

TEST_CASE("a child of a threaded program that records nothing ends, also with ThreadSanitizer") {
  CHECK(status_of_threaded_child([] {
          { LOTUS_SCOPE("not_recorded"); }
          _exit(0);
        }) == 0);
}
