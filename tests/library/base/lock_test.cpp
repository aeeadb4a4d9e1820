#include "lotus/base/lock.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <thread>

#include "catch.hpp"

using lotus::detail::lazy_lookup;

namespace {

// Returns whether `body` returns quickly. If `body` waited for a lookup that another thread is
// executing, it would take about a second. It runs ten times, so that a busy machine does not
// matter.
template <class Body>
bool at_once(Body&& body) {
  const auto start = std::chrono::steady_clock::now();
  for (int time = 0; time < 10; ++time) body();
  return std::chrono::steady_clock::now() - start < std::chrono::seconds(9);
}

}  // namespace

TEST_CASE("a lazy lookup calls its function once") {
  lazy_lookup<int> number;
  int finds = 0;
  const auto find = [&] { return ++finds; };
  CHECK(number.known(-1) == -1);
  CHECK(number.get(find, -1) == 1);
  CHECK(number.get(find, -1) == 1);
  CHECK(number.get_at_once(find, -1) == 1);
  CHECK(number.known(-1) == 1);
}

TEST_CASE("a lookup from within its own function returns the default at once") {
  lazy_lookup<int> number;
  int within = 0;
  number.get(
      [&] {
        CHECK(at_once([&] { within = number.get([] { return 7; }, -1); }));
        return 5;
      },
      -1);
  CHECK(within == -1);
  CHECK(number.get([] { return 7; }, -1) == 5);
}

TEST_CASE("during a lookup others wait or get the default, and a forked child never waits") {
  lazy_lookup<int> number;
  std::promise<void> finding;
  std::promise<void> go_on;
  std::thread finder{[&] {
    number.get(
        [&] {
          finding.set_value();
          go_on.get_future().wait();
          return 5;
        },
        -1);
  }};
  finding.get_future().wait();
  int other = 0;
  CHECK(at_once([&] { other = number.get_at_once([] { return 7; }, -1); }));
  CHECK(other == -1);
  const pid_t child = fork();
  if (child == 0) _exit(at_once([&] { other = number.get([] { return 7; }, -2); }) ? -other : 0);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 2));
  std::thread waits{[&] { other = number.get([] { return 7; }, -1); }};
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  go_on.set_value();
  waits.join();
  finder.join();
  CHECK(other == 5);
}
