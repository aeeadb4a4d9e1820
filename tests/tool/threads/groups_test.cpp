// Tests how threads are grouped and which times groups have, with files of samples that the test
// writes.
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "built_samples.hpp"
#include "catch.hpp"
#include "sampled_program.hpp"
#include "threads/analysis/named_stacks.hpp"
#include "threads/analysis/seen_together.hpp"
#include "threads/analysis/thread_activity.hpp"
#include "tool/tool_test.hpp"
#include "written_samples.hpp"

using namespace lotus::tool_test;

TEST_CASE("shares come from the kernel's times, and the rest is blocked") {
  written_samples of;
  const int main = of.thread("prog");
  of.used(300, 200);
  of.runs(main, {"work:3", main_started}, 30);
  of.waits(main, {libc + "read", "work:4", main_started}, "pipe", 0, 0, "pipe:[7]", 20);
  const json group = of.found()["groups"].array()[0];
  CHECK(std::abs(group["running"].number() - 0.3) < 1e-9);
  CHECK(std::abs(group["run_queue"].number() - 0.2) < 1e-9);
  CHECK(std::abs(blocked_share(group) - 0.5) < 1e-9);
  CHECK(std::abs(group["cpu_s"].number() - 0.3) < 1e-9);
}

TEST_CASE("collapsed stacks have the time of each group's samples") {
  written_samples of;
  const int main = of.thread("prog");
  const int worker = of.thread("prog");
  of.runs(main, {"use:3", "run:2", main_started}, 30);
  of.runs(main, {"open:3", "run:2", main_started}, 10);
  of.waits(main, {libc + "read", "run:4", main_started}, "pipe", 0, 0, "pipe:[7]", 20);
  of.runs(worker, {"build:3", "loop:2", started}, 5);
  const temp_dir dir;
  of.write(dir);
  const std::string stacks = dir.path() + "/stacks.txt";
  REQUIRE(run({"export", dir.path(), "--format", "collapsed", "-o", stacks}).status == 0);
  const std::string text = read_file(stacks);
  INFO(text);
  // Each thread existed for a second, and used a CPU for 0.4 s of it.
  CHECK(contains(text, "main;running;__libc_start_main;run;use 300000\n"));
  CHECK(contains(text, "main;running;__libc_start_main;run;open 100000\n"));
  CHECK(contains(text, "main;pipe;__libc_start_main;run;read 600000\n"));
  CHECK(contains(text, "loop;running;start_thread;loop;build 400000\n"));
  CHECK_FALSE(contains(text, "loop;running;__libc"));
}

TEST_CASE("a thread that starts others and then does the same is one of them") {
  const auto is_one = [](int same, int other_work) {
    written_samples of;
    of.thread("prog");
    const int first = of.thread("prog");
    const int second = of.thread("prog");
    of.runs(second, {"compute:9", "worker:5", started}, 20);
    of.runs(first, {"compute:9", "worker:5", "first_worker:2", started}, same);
    if (other_work > 0) of.runs(first, {"prepare:9", "first_worker:3", started}, other_work);
    const json found = of.found();
    return group_of(found, "worker")["threads"].integer() == 2;
  };
  CHECK(is_one(18, 2));
  CHECK_FALSE(is_one(18, 3));
  CHECK(is_one(10, 0));
  CHECK_FALSE(is_one(9, 0));  // too few samples
}

TEST_CASE("a function of two roles is a wrapper only if each thread keeps to its role") {
  const auto groups = [](int samples, bool calls_another, bool only_waits) {
    written_samples of;
    of.thread("prog");
    const int packer = of.thread("prog");
    const int sender = of.thread("prog");
    of.runs(packer, {"deflate:9", "pack:5", "shell:2", started}, samples);
    if (calls_another) of.runs(packer, {"log:9", "write_log:5", "shell:3", started}, 1);
    if (only_waits) {
      of.waits(sender, {libc + "futex_wait", "send:7", "shell:2", started}, "condition", 128);
    } else {
      of.runs(sender, {"write_all:9", "send:7", "shell:2", started}, samples);
    }
    return of.found()["groups"].array().size();
  };
  CHECK(groups(5, false, false) == 3);
  CHECK(groups(4, false, false) == 2);  // too few samples
  CHECK(groups(9, true, false) == 2);
  CHECK(groups(9, false, true) == 2);
}

TEST_CASE("two lambdas at one line have the compiler's names, and one has its line") {
  written_samples of;
  of.thread("prog");
  const int one = of.thread("prog");
  of.runs(one, {"burn:9", "run::{lambda()#1}::operator():5", started}, 20);
  CHECK(of.found()["groups"].array()[1]["start"].text() == "a lambda in run");
  const int two = of.thread("prog");
  of.runs(two, {"burn:9", "run::{lambda()#2}::operator():5", started}, 20);
  const json found = of.found();
  group_of(found, "the lambda {lambda()#1} in run");
  group_of(found, "the lambda {lambda()#2} in run");
}

TEST_CASE("if main only waits for processes, the headline is about the one that ran longest") {
  written_samples of;
  const int shell = of.thread("sh");
  of.used(10, 0);
  of.waits(shell, {libc + "wait4", "wait_for:3", main_started}, "process", 0);
  of.thread("first", 20);
  of.short_thread(1, 0, 100);
  const int longest = of.thread("second", 30);
  of.runs(longest, {"sort_all:3", main_started}, 50);
  of.thread("third", 40);
  of.short_thread(3, 0, 200);
  const json found = of.found();
  CHECK(contains(found["headline"].text(), "the process `second` spends"));
}

TEST_CASE("of threads that were too short-lived to be sampled, no shares are shown") {
  written_samples of;
  const int main = of.thread("prog");
  const int join = of.waits(main, {libc + "pthread_join", "start_all:8", main_started}, "condition",
                            16, written_samples::tid(1), "the end of a thread");
  const int seen = of.thread("prog");
  of.short_thread(seen, 10, 400);
  of.waits(seen, {libc + "futex_wait", "get:3", "task:4", started}, "lock", 64, 0, "", 2);
  for (int i = 0; i < 20; ++i) of.short_thread(of.thread("prog"), 20 * i, 20 * i + 100);
  of.moments(20, {{main, join}});
  const std::string text = of.threads({"--wide"}).out;
  INFO(text);
  CHECK(contains(text, "for 21 threads in `task`. These threads ended too soon to be sampled."));
  CHECK_FALSE(contains(text, "waits in `get`"));
}

TEST_CASE("a thread that waits for a CPU much longer than for anything else works") {
  for (const int queue_ms : {700, 400}) {
    written_samples of;
    const int main = of.thread("prog");
    of.used(50, queue_ms);
    of.waits(main, {libc + "read", "run:4", main_started}, "pipe", 0, 0, "pipe:[7]");
    of.runs(main, {"use:3", "run:2", main_started}, 10);
    const json hop = of.found()["chain"].array().front();
    CHECK(hop["waits"].boolean() == (queue_ms == 400));
    CHECK(std::abs(hop["share"].number() - (queue_ms == 400 ? 0.55 : 0.75)) < 1e-9);
  }
}

TEST_CASE("if main itself works, the busiest other threads are named too") {
  written_samples of;
  const int main = of.thread("prog");
  of.used(900, 0);
  of.runs(main, {"use:3", "run:2", main_started}, 90);
  const int busy = of.thread("prog");
  of.used(600, 0);
  of.runs(busy, {"build:3", "loop:2", started}, 60);
  const int idle = of.thread("prog");
  of.used(100, 0);
  of.runs(idle, {"log:3", "tick:2", started}, 10);
  CHECK(contains(of.found()["headline"].text(),
                 "`use` (prog.cpp:3). The busiest other one is 1 thread in `loop`, which spends"));
}

TEST_CASE("a lock whose holder is no thread of the program has no known holder") {
  written_samples of;
  const int main = of.thread("prog");
  of.waits(main, {libc + "__lll_lock_wait", "insert:7", main_started}, "lock", 64, 4711);
  CHECK_FALSE(of.found()["groups"].array()[0]["blocked"].array()[0].has("waits_for"));
}

namespace {

using lotus::tool::thread_activity;

std::vector<thread_activity> groups_in(const built_samples& of) {
  return activity_of(of, lotus::tool::named_stacks(of));
}

/// Returns the shown groups of a program that started another one: the main threads, a thread of
/// the other one that began with `loop`, and one of the first program.
/// @param path  of the other program.
/// @param own  with which the thread of the first program began; "" if there is none.
std::map<std::string, std::string> shown_groups(const std::string& path, const std::string& own) {
  built_samples of(1000);
  of.processes = {{1, "/home/user/prog"}, {2, path}};
  of.thread(500);
  of.runs(0, {{"work", 1}, {"main", 2}}, 9, main_begins);
  for (const unsigned pid : {2U, 2U, 1U}) {
    if (pid == 1 && own.empty()) continue;
    const std::size_t number = of.threads.size();
    lotus::tool::sampled_thread& thread = of.thread(500);
    thread.pid = pid;
    if (number == 1) thread.tid = pid;
    if (number == 2) thread.tid = 77;
    const bool is_main = thread.pid == thread.tid;
    if (is_main) thread.name = "child";
    const std::string start = is_main ? "main" : pid == 1 ? own : "loop";
    of.runs(number, {{"work", 1}, {start, 2}}, 9, is_main ? main_begins : thread_begins);
  }
  std::map<std::string, std::string> shown;
  for (const thread_activity& group : groups_in(of)) shown[shown_group(group)] = unique_name(group);
  return shown;
}

}  // namespace

TEST_CASE("groups have the name of their program if there is another one") {
  using names = std::map<std::string, std::string>;
  CHECK(shown_groups("/opt/other", "") ==
        names{{"main thread", "main"},
              {"the process `child`", "main of child"},
              {"1 thread in `loop` of `other`", "loop of other"}});
  CHECK(shown_groups("/opt/other", "decode").count("1 thread in `decode`") == 1);
  CHECK(shown_groups("/opt/other", "loop") ==
        names{{"main thread", "main"},
              {"the process `child`", "main of child"},
              {"1 thread in `loop` of `other`", "loop of other"},
              {"1 thread in `loop` of `prog`", "loop of prog"}});
  // Files of the same name differ in their folders.
  CHECK(shown_groups("/opt/prog", "loop") ==
        names{{"main thread", "main"},
              {"the process `child`", "main of child"},
              {"1 thread in `loop` of `/opt/prog`", "loop of /opt/prog"},
              {"1 thread in `loop` of `/home/user/prog`", "loop of /home/user/prog"}});
  // A forked process runs the same program, and its threads are in the same group.
  CHECK(shown_groups("/home/user/prog", "loop") ==
        names{{"main thread", "main"},
              {"the process `child`", "main of child"},
              {"2 threads in `loop` of 2 processes", "loop"}});
}

TEST_CASE("processes of the same name differ in their programs, if these differ") {
  for (const std::string path : {"/opt/a", "/opt/b"}) {
    built_samples of(1000);
    of.processes = {{1, "/home/user/prog"}, {2, "/opt/a"}, {3, path}};
    of.thread(500);
    for (const unsigned pid : {2U, 3U}) {
      lotus::tool::sampled_thread& thread = of.thread(500);
      thread.pid = thread.tid = pid;
      thread.name = "child";
    }
    const std::vector<thread_activity> groups = groups_in(of);
    if (path == "/opt/a") {
      REQUIRE(groups.size() == 2);
      CHECK(shown_group(groups[1]) == "2 processes `child`");
    } else {
      REQUIRE(groups.size() == 3);
      CHECK(shown_group(groups[1]) == "the process `child` (a)");
      CHECK(shown_group(groups[2]) == "the process `child` (b)");
    }
  }
}

TEST_CASE("a thread is named by its own name if it is unknown how it began") {
  built_samples of(1000);
  of.thread(500);
  of.thread(400).name = "writer";
  of.runs(1, {{"write_all", 1}}, 9, "");  // the stack is cut off
  of.thread(300);
  of.runs(2, {{"write_all", 1}}, 9, "");
  const std::vector<thread_activity> groups = groups_in(of);
  REQUIRE(groups.size() == 3);
  CHECK(groups[1].start == "writer");
  CHECK(groups[2].start == "prog");
}

TEST_CASE("a lambda has the line at which most of its samples say that it is") {
  built_samples of(1000);
  of.thread(500);
  of.thread(500);
  for (const int at : {30, 40}) {
    of.runs(1, {{"run::{lambda()#1}::operator()", 0}}, at, thread_begins);
    of.names[of.stacks.back().front()].front().defined_in = "/home/user/run.cpp";
    of.names[of.stacks.back().front()].front().defined_at = at;
  }
  const thread_activity group = groups_in(of)[1];
  CHECK(group.start == "a lambda at run.cpp:40 in run");
  CHECK(shown_group(group) == "1 thread in a lambda at run.cpp:40 of `run`");
}

TEST_CASE("what short threads do is known if half of them were sampled, or all often enough") {
  thread_activity of;
  of.threads = 4;
  of.unsampled = 2;
  CHECK(of.is_sampled());
  of.unsampled = 3;
  CHECK_FALSE(of.is_sampled());
  of.cpu_samples = 19;
  CHECK_FALSE(of.is_sampled());
  of.cpu_samples = 20;
  CHECK(of.is_sampled());
}

TEST_CASE(
    "the longest process is the subject if main waits for processes four fifths of the time") {
  std::vector<thread_activity> groups(4);
  CHECK(lotus::tool::subject_of({}) == 0);
  CHECK(subject_of(groups) == 0);
  for (std::size_t i = 1; i < groups.size(); ++i) {
    groups[i].is_process = i > 1;
    groups[i].time_s = i == 2 ? 2 : i == 1 ? 3 : 1;
  }
  groups[0].blocked.emplace_back();
  groups[0].blocked[0].reason = lotus::detail::wait_reason::process;
  groups[0].blocked[0].share = 0.79;
  CHECK(subject_of(groups) == 0);
  groups[0].blocked[0].share = 0.8;
  CHECK(subject_of(groups) == 2);
  groups[3].time_s = 2.5;
  CHECK(subject_of(groups) == 3);
  groups[0].blocked[0].reason = lotus::detail::wait_reason::sleep;
  CHECK(subject_of(groups) == 0);
}
