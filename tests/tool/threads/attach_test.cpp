// Tests lotus-tool attach, which samples the threads of a program that is already running.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>

#include "catch.hpp"
#include "sampled_program.hpp"
#include "support.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

const std::string planted = PLANTED_THREADS;

/// Waits until the program has started its threads.
void wait_for_threads(const running_program& program, int count) {
  for (int i = 0; i < 1000; ++i) {
    if (contains(read_file("/proc/" + program.number() + "/status"),
                 "Threads:\t" + std::to_string(count) + "\n")) {
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  FAIL("the program has started no threads");
}

}  // namespace

TEST_CASE("a running program is sampled until the time is over, and goes on undisturbed") {
  const temp_dir dir;
  running_program pool({planted, "pool", "4000"});
  wait_for_threads(pool, 3);
  const result seen =
      run({"attach", pool.number(), "--for", "2", "--dir", dir.path() + "/run", "--json"});
  INFO(seen.err);
  CHECK(seen.status == 0);
  CHECK(contains(seen.err, "sampling process " + pool.number() + " (planted_threads)"));
  CHECK_FALSE(contains(seen.err, "has ended"));
  const json threads = parse_json(seen.out);
  const std::string headline = threads["headline"].text();
  INFO(headline);
  CHECK(contains(headline, "main thread waits "));
  CHECK(contains(headline, "for 2 threads in `worker_loop`"));
  const json workers = group_of(threads, "worker_loop", "/planted_threads");
  CHECK(workers["threads"].integer() == 2);
  CHECK(workers["processes"].integer() == 1);
  // The threads that ran before lotus-tool attached must be sampled too, not only those that
  // started later.
  if (threads["sampling"]["cpu_interval_ns"].integer() != 0) {
    CHECK(workers["cpu_samples"].integer() > 0);
    CHECK(workers["functions"].array().front()["name"].text() == "burn");
  }
  CHECK(run({"threads", dir.path() + "/run"}).status == 0);
  CHECK(pool.wait() == 0);
}

TEST_CASE("attach ends with the process") {
  const temp_dir dir;
  running_program sleeps({planted, "sleeps", "900"});
  const result seen = run({"attach", sleeps.number(), "--dir", dir.path() + "/run"});
  INFO(seen.err);
  CHECK(seen.status == 0);
  CHECK(contains(seen.err, "the process has ended; the samples are in "));
  CHECK(contains(seen.out, " sleeps in `sleeps` "));
  CHECK(sleeps.wait() == 0);
}

TEST_CASE("a process that has just called exec is not taken for a kernel thread") {
  const temp_dir dir;
  const std::string script = dir.file("again.sh", "exec /bin/sh \"$0\"\n");
  running_program starts_anew({"/bin/sh", script});
  for (int i = 0; i < support::rounds(100); ++i) {
    const result seen = run({"attach", starts_anew.number(), "--for", "0.01", "--dir",
                             dir.path() + "/run" + std::to_string(i)});
    INFO(seen.err);
    REQUIRE_FALSE(contains(seen.err, "kernel thread"));
  }
}

TEST_CASE("Ctrl-C ends the sampling, and the result is printed") {
  const temp_dir dir;
  running_program sleeps({planted, "sleeps", "20000"});
  const std::string output = dir.file("out", "");
  dir.file("out.err", "");  // so that the loop below can read it
  running_program tool(
      {LOTUS_TOOL_PROGRAM, "attach", sleeps.number(), "--dir", dir.path() + "/run"}, output);
  for (int i = 0; i < 500 && !contains(read_file(output + ".err"), "sampling process"); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(1000));
  CHECK(kill(tool.pid(), SIGINT) == 0);
  CHECK(tool.wait() == 0);
  INFO(read_file(output + ".err"));
  CHECK(contains(read_file(output), " sleeps in `sleeps` "));
  CHECK(kill(sleeps.pid(), 0) == 0);
}

TEST_CASE("processes that were started before are sampled too") {
  const temp_dir dir;
  running_program shell({"/bin/sh", "-c", "'" + planted + "' pool 3000; exit 3"});
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const result seen =
      run({"attach", shell.number(), "--for", "1.5", "--dir", dir.path() + "/run", "--json"});
  INFO(seen.err);
  REQUIRE(seen.status == 0);
  const json threads = parse_json(seen.out);
  CHECK(group_of(threads, "main")["blocked"].array().front()["reason"].text() == "process");
  CHECK(group_of(threads, "worker_loop", "/planted_threads")["threads"].integer() == 2);
  CHECK(shell.wait() == 3);
}

TEST_CASE("attach says in one line why a process cannot be sampled") {
  const temp_dir dir;
  const auto refused = [&](const std::string& pid, const std::string& reason) {
    const result seen = run({"attach", pid, "--for", "1", "--dir", dir.path() + "/run"});
    INFO(seen.err);
    CHECK(seen.status == 1);
    CHECK(contains(seen.err, reason));
    CHECK(seen.err.find('\n') == seen.err.size() - 1);
  };
  refused("4194305", "there is no process 4194305");
  refused(std::to_string(getpid()), ") is lotus-tool itself");
  running_program ended({"/bin/true"});
  for (int i = 0; i < 500; ++i) {
    if (contains(read_file("/proc/" + ended.number() + "/status"), "State:\tZ")) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  refused(ended.number(), "(true) has ended");

  running_program pool({planted, "pool", "20000"});
  wait_for_threads(pool, 3);
  const std::string list = "/proc/" + pool.number() + "/task";
  std::string thread = pool.number();
  for (const auto& entry : std::filesystem::directory_iterator(list)) {
    if (entry.path().filename() != pool.number()) thread = entry.path().filename();
  }
  refused(thread, thread + " is a thread of process " + pool.number());
  CHECK(run({"attach", pool.number(), "--for", "0"}).status == 2);
  CHECK(run({"attach", "train"}).status == 2);
}

TEST_CASE("attach says that it has no permission to look at the process of another user") {
  const temp_dir dir;
  running_program sleeps({planted, "sleeps", "20000"});
  const pid_t child = fork();
  if (child == 0) {
    // If the test runs as root, this child process gives up its privileges and then attaches to a
    // process of root. For any other user, it attaches to process 1, which belongs to root.
    const bool is_root = geteuid() == 0;
    if (is_root && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(77);
    const result seen =
        run({"attach", is_root ? sleeps.number() : "1", "--for", "1", "--dir", dir.path() + "/x"});
    const bool is_right =
        seen.status == 1 && contains(seen.err, "no permission to look at process ") &&
        contains(seen.err, "which belongs to user 0: run lotus-tool as this user");
    std::fputs(seen.err.c_str(), stderr);
    _exit(is_right ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) {
    lotus_test::skip("cannot become another user");
    return;
  }
  CHECK(WEXITSTATUS(status) == 0);
}
