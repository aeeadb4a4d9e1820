// Tests for whom a thread is said to wait, where markers are suggested, and which phases a run has,
// with files of samples that the test writes.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "catch.hpp"
#include "sampled_program.hpp"
#include "tool/tool_test.hpp"
#include "written_samples.hpp"

using namespace lotus::tool_test;

namespace {

calls waiting_in(const std::string& function, const std::string& start) {
  return {libc + "futex_wait", function, start, started};
}

/// Who main waits for in one function, if a thread waits in another one.
struct two_waits {
  std::string main = "*Q::pop:3";
  std::string other = "*Q::push:5";
  std::uint64_t apart = 48;  ///< the distance between the addresses
  int pid = 1;               ///< of the other thread
};

std::string answer(written_samples& of, const two_waits& in) {
  const int main = of.thread("prog");
  const int other = of.thread("prog", in.pid);
  of.waits(main, {libc + "futex_wait", in.main, "run:8", main_started}, "condition", 100'000);
  of.waits(other, waiting_in(in.other, "loop:6"), "condition", 100'000 + in.apart);
  const json wait = of.found()["groups"].array()[0]["blocked"].array()[0];
  if (!wait.has("waits_for")) return "nobody";
  return wait["sure"].boolean() ? "sure" : wait["why"].text();
}

std::string answer(const two_waits& in) {
  written_samples of;
  return answer(of, in);
}

constexpr const char* neighbor = "it waits at a neighboring address";
constexpr const char* same_class = "it uses the same class";

}  // namespace

TEST_CASE("threads that wait at the two ends of an object wait for each other") {
  CHECK(answer(two_waits{}) == "sure");
  CHECK(answer({"*Q::pop:3", "*Q::push:5", 8}) == "sure");
  CHECK(answer({"*Q::pop:3", "*Q::push:5", 256}) == "sure");
  // The class is the same, so this can be another part of a large object, but not of another one.
  CHECK(answer({"*Q::pop:3", "*Q::push:5", 257}) == same_class);
  CHECK(answer({"*Q::pop:3", "*Q::push:5", 4096}) == same_class);
  CHECK(answer({"*Q::pop:3", "*Q::push:5", 4097}) == "nobody");
  // One condition variable shows more than a name.
  CHECK(answer({"pop:3", "push:5", 8}) == "sure");
  CHECK(answer({"pop:3", "push:5", 9}) == neighbor);
  CHECK(answer({"pop:3", "push:5", 256}) == neighbor);
  CHECK(answer({"pop:3", "push:5", 257}) == "nobody");
  CHECK(answer({"ns::pop:3", "ns::push:5"}) == neighbor);
  CHECK(answer({"*A::pop:3", "*B::push:5"}) == neighbor);
  // Another template argument is another object, and one function is one end.
  CHECK(answer({"*Q<int>::pop:3", "*Q<char>::push:5"}) == "nobody");
  CHECK(answer({"*Q<int>::pop:3", "*Q<int>::push:5"}) == "sure");
  CHECK(answer({"*Q::pop:3", "*Q::pop:3"}) == "nobody");
  CHECK(answer({"*Q::pop:3", "*Q::push:5", 48, 2}) == "nobody");
  const std::string unnamed = "(anonymous namespace)::";
  CHECK(answer({unnamed + "pop:3", unnamed + "push:5"}) == neighbor);
}

TEST_CASE("nobody is named if two groups could be waited for, or a second object exists") {
  written_samples two;
  const int second = 2;
  CHECK(answer(two, {}) == "sure");
  two.thread("prog");
  two.waits(second, waiting_in("*Q::push:5", "more:7"), "condition", 100'048);
  CHECK_FALSE(two.found()["groups"].array()[0]["blocked"].array()[0].has("waits_for"));

  // A second thread that takes from a queue takes from another one, if it waits for another
  // condition, or farther away than the same object could be.
  const auto is_sure = [&](std::uint64_t address, const std::string& reason) {
    written_samples other;
    CHECK(answer(other, {}) == "sure");
    other.thread("prog");
    other.waits(second, waiting_in("*Q::pop:3", "more:7"), reason, address);
    const json wait = other.found()["groups"].array()[0]["blocked"].array()[0];
    CHECK(wait["waits_for"].text() == "loop");
    return wait["sure"].boolean();
  };
  CHECK_FALSE(is_sure(200'000, "condition"));
  CHECK_FALSE(is_sure(100'009, "condition"));
  CHECK(is_sure(100'008, "condition"));
  CHECK(is_sure(104'096, "lock"));
  CHECK_FALSE(is_sure(104'097, "lock"));
  CHECK(is_sure(0, "sleep"));  // where is unknown
}

TEST_CASE("a thread that calls the object's class is waited for, not one that only waits there") {
  for (const bool calls_push : {true, false}) {
    written_samples of;
    const int main = of.thread("prog");
    const int maker = of.thread("prog");
    of.waits(main, {libc + "futex_wait", "*Q::pop:3", "run:8", main_started}, "condition", 4096);
    of.runs(maker, {calls_push ? "*Q::push:5" : "*Q::pop:4", "loop:6", started}, 30);
    const json wait = of.found()["groups"].array()[0]["blocked"].array()[0];
    CHECK(wait.has("waits_for") == calls_push);
    if (calls_push) CHECK(wait["sure"].boolean());
  }
}

TEST_CASE("of several groups at an object, the one that works during the wait ends it") {
  written_samples of;
  const int main = of.thread("prog");
  const int idle = of.thread("prog");
  const int maker = of.thread("prog");
  const int pop =
      of.waits(main, {libc + "futex_wait", "*Q::pop:3", "run:8", main_started}, "condition", 4096);
  const int push = of.waits(idle, waiting_in("*Q::push:5", "idle:7"), "condition", 4144);
  of.runs(maker, {"*Q::push:4", "loop:6", started}, 30);
  of.moments(30, {{main, pop}, {idle, push}, {maker, -1}});
  const json wait = of.found()["groups"].array()[0]["blocked"].array()[0];
  CHECK(wait["waits_for"].text() == "loop");
  CHECK(wait["sure"].boolean());
}

TEST_CASE("the only group that works at most moments of a wait is probably waited for") {
  const auto named = [](int moments, int works, int also) {
    written_samples of;
    const int main = of.thread("prog");
    const int maker = of.thread("prog");
    const int third = of.thread("prog");
    const int waits =
        of.waits(main, {libc + "futex_wait", "take:3", "run:8", main_started}, "condition", 4096);
    const int sleeps = of.waits(maker, {libc + "nanosleep", "loop:6", started}, "sleep", 0);
    const int naps = of.waits(third, {libc + "nanosleep", "tick:6", started}, "sleep", 0);
    for (int i = 0; i < moments; ++i) {
      of.moment(i,
                {{main, waits}, {maker, i < works ? -1 : sleeps}, {third, i < also ? -1 : naps}});
    }
    const json wait = of.found()["groups"].array()[0]["blocked"].array()[0];
    return wait.has("waits_for") ? wait["waits_for"].text() : std::string();
  };
  CHECK(named(20, 16, 0) == "loop");
  CHECK(named(20, 15, 0).empty());
  CHECK(named(20, 20, 9) == "loop");
  CHECK(named(20, 20, 10).empty());
  CHECK(named(8, 8, 0) == "loop");
  CHECK(named(7, 7, 0).empty());
}

TEST_CASE("of the threads at the other end of a pipe, the group that works is waited for") {
  const auto named = [](bool both_work, bool is_own) {
    written_samples of;
    const int main = of.thread("prog");
    const int reads =
        of.waits(main, {libc + "read", "receive:5", main_started}, "pipe", 6, 0, "pipe:[7]");
    const int pid = is_own ? 1 : 2;
    const int writer = of.thread("prog", pid);
    const int other = is_own ? of.thread("prog") : of.thread("prog", 3);
    const int sleeps = of.waits(other, {libc + "nanosleep", "tick:6", started}, "sleep", 0);
    of.runs(writer, {"write_all:3", "loop:4", started}, 30);
    of.runs(other, {"count:3", "tick:4", started}, 3);
    of.moments(30, {{main, reads}, {writer, -1}, {other, both_work ? -1 : sleeps}});
    of.end(1, false, "pipe:[7]");
    of.end(pid, true, "pipe:[7]");
    if (!is_own) of.end(3, true, "pipe:[7]");
    const json wait = of.found()["groups"].array()[0]["blocked"].array()[0];
    if (!wait.has("waits_for")) return std::string();
    return wait["waits_for"].text() + (wait["sure"].boolean() ? " surely" : "");
  };
  CHECK(named(true, true).empty());
  CHECK(named(false, true) == "loop");
}

TEST_CASE("a wait for a child process is for the only other process, if there is only one") {
  for (const int children : {1, 2}) {
    written_samples of;
    const int main = of.thread("sh");
    of.waits(main, {libc + "wait4", "wait_for:3", main_started}, "process", 0);
    of.thread("sh");  // a thread of main's own process is none
    for (int i = 0; i < children; ++i) {
      of.runs(of.thread("child" + std::to_string(i), 20 + i), {"work:3", main_started}, 9);
    }
    const json wait = of.found()["groups"].array()[0]["blocked"].array()[0];
    CHECK(wait.has("waits_for") == (children == 1));
    if (children == 1) CHECK(wait["waits_for"].text() == "main of child0");
    if (children == 1) CHECK(wait["why"].text() == "there is no other process");
  }
}

TEST_CASE("threads that have ended do not work unseen") {
  written_samples of;
  const int main = of.thread("prog");
  const int maker = of.thread("prog");
  const int waits =
      of.waits(main, {libc + "futex_wait", "take:3", "run:8", main_started}, "condition", 4096);
  const int sleeps = of.waits(maker, {libc + "nanosleep", "loop:6", started}, "sleep", 0);
  of.started_by_main(maker, 0);
  for (int i = 0; i < 10; ++i) of.short_thread(of.thread("prog"), i, i + 1);
  for (int i = 0; i < 40; ++i)
    of.moment(100 + i, {{main, waits}, {maker, i % 2 == 0 ? -1 : sleeps}});
  const json found = of.found();
  CHECK(group_of(found, "loop")["threads"].integer() == 11);
  CHECK_FALSE(found["groups"].array()[0]["blocked"].array()[0].has("waits_for"));
}

TEST_CASE("markers belong to a loop of the user that is seen often enough") {
  struct program {
    std::string receives = "next_batch:3";
    std::string runs_in = "run_all:8";
    std::string builds_in = "work_loop:6";
    std::string file = "/home/user/prog.cpp";
    int builds = 4;  ///< samples of the builder at each of ten moments
    bool shares_line = false;
  };
  const auto count = [](const program& p) {
    written_samples of;
    of.set_file(p.file);
    const int main = of.thread("prog");
    const int worker = of.thread("prog");
    const int waits = of.waits(main, {libc + "futex_wait", p.receives, p.runs_in, main_started},
                               "condition", 4096);
    for (int ms = 5; ms < 1000; ms += 100) {
      of.runs(main, {"use:5", "run_all:9", main_started}, 4, ms);
      if (p.builds > 0) of.runs(worker, {"build:5", p.builds_in, started}, p.builds, ms);
    }
    if (p.shares_line) of.runs(of.thread("prog"), {"check:5", p.builds_in, "other:1", started}, 1);
    for (int ms = 20; ms < 1000; ms += 20) of.moment(ms, {{main, waits}, {worker, -1}});
    return of.found()["suggested_markers"].array().size();
  };
  CHECK(count({}) == 3);
  CHECK(count({"next_batch:3", "run_all:8", "work_loop:6", "/home/user/prog.c"}) == 4);
  CHECK(count({"next_batch:3", "run_all:8", "work_loop:6", "/usr/include/x.hpp"}) == 0);
  CHECK(count({"next_batch:3", "run_all:8", "work_loop"}) == 0);  // no line
  CHECK(count({"next_batch:3", "run_all:8", "work_loop:6", "/home/user/prog.cpp", 1}) == 3);
  CHECK(count({"next_batch:3", "run_all:8", "work_loop:6", "/home/user/prog.cpp", 0}) == 0);
  CHECK(count({"next_batch:3", "run_all:8", "work_loop:6", "/home/user/prog.cpp", 4, true}) == 0);
  for (const char* name : {"submit:3", "waitForRoom:3", "EnqueueAll:3", "Pool::schedule:3"}) {
    CHECK(count({name}) == 0);
  }
}

TEST_CASE("markers belong to the consumer's loop, above the classes of the loader") {
  written_samples of;
  const int main = of.thread("prog");
  const int worker = of.thread("prog");
  const int waits =
      of.waits(main, {libc + "futex_wait", "*Q::pop:3", "*Loader::next:5", "train:9", main_started},
               "condition", 4096);
  for (int ms = 5; ms < 1000; ms += 100) {
    of.runs(main, {"step:5", "train:12", main_started}, 4, ms);
    of.runs(main, {"*Loader::check:7", "*Loader::next:61", "train:9", main_started}, 1, ms + 2);
    of.runs(worker, {"build:5", "work_loop:6", started}, 4, ms);
  }
  for (int ms = 20; ms < 1000; ms += 20) of.moment(ms, {{main, waits}, {worker, -1}});
  const std::vector<json> markers = of.found()["suggested_markers"].array();
  REQUIRE(markers.size() == 3);
  CHECK(markers[0]["function"].text() == "train");
  CHECK(markers[0]["line"].integer() == 9);
}

TEST_CASE("a phase lasts a twelfth of the run, and idle time is one too") {
  const auto phases = [](int second_ms, int third_ms) {
    written_samples of;
    const int main = of.thread("prog");
    const int worker = of.thread("prog");
    for (int ms = 5; ms < second_ms; ms += 10) of.runs(main, {"read:3", main_started}, 1, ms);
    for (int ms = second_ms + 5; ms < third_ms; ms += 10) {
      of.runs(worker, {"decode:3", "loop:4", started}, 2, ms);
    }
    return of.found()["phases"].array();
  };
  const std::vector<json> three = phases(250, 750);
  REQUIRE(three.size() == 3);
  CHECK(three[0]["group"].integer() == 0);
  CHECK(std::abs(three[0]["end_s"].number() - 0.25) < 1e-9);
  CHECK(std::abs(three[0]["cpus"].number() - 1) < 0.1);
  CHECK(std::abs(three[1]["cpus"].number() - 2) < 0.1);
  CHECK(std::abs(three[1]["share"].number() - 1) < 1e-9);
  CHECK(std::abs(three[1]["end_s"].number() - 0.75) < 1e-9);
  CHECK_FALSE(three[2].has("group"));
  CHECK(std::abs(three[2]["end_s"].number() - 1) < 1e-9);
  // Two of 36 slices are too few; their CPU time is then a part of the next phase's.
  const std::vector<json> joined = phases(55, 1000);
  REQUIRE(joined.size() == 1);
  CHECK(joined[0]["group"].integer() == 1);
  CHECK(joined[0]["share"].number() < 0.99);
  CHECK(phases(84, 1000).size() == 2);
}
