// Tests the sampling of threads by lotus-tool run and its presentation by lotus-tool threads, with
// programs that have no markers.
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "at_once.hpp"
#include "catch.hpp"
#include "threads/analysis/named_stacks.hpp"
#include "tool/tool_test.hpp"

using lotus::tool::shown_work;
using lotus::tool::source_place;
using namespace lotus::tool_test;

namespace {

struct sampled_run {
  int status = -1;
  std::string out;
  std::string err;
  json threads = parse_json("{}");  ///< output of `threads --json`
};

/// Returns the command that samples a program, to be run in a folder.
std::string sampling_of(const std::string& program) {
  return std::string("'") + LOTUS_TOOL_PROGRAM + "' run --dir run -- " + program + " >out 2>err";
}

/// Returns the status of a command that is run in `dir`.
int status_in(const temp_dir& dir, const std::string& command) {
  const std::string all = "cd '" + dir.path() + "' && unset LOTUS_LOG_FILE && " + command;
  return std::system(all.c_str());
}

/// Reads what was sampled in `dir`.
sampled_run read_run(const temp_dir& dir, int status, bool has_samples = true) {
  REQUIRE(WIFEXITED(status));
  sampled_run done;
  done.status = WEXITSTATUS(status);
  done.out = read_file(dir.path() + "/out");
  done.err = read_file(dir.path() + "/err");
  if (!has_samples) return done;
  const result printed = run({"threads", dir.path() + "/run", "--json"});
  INFO(done.err + printed.err);
  REQUIRE(printed.status == 0);
  done.threads = parse_json(printed.out);
  return done;
}

/// Runs `lotus-tool run -- PROGRAM` and reads what was sampled.
sampled_run sample(const temp_dir& dir, const std::string& program, bool has_samples = true) {
  return read_run(dir, status_in(dir, "exec " + sampling_of(program)), has_samples);
}

const std::string planted = PLANTED_THREADS;

struct sleeping_run {
  std::string name;
  std::string command;
  temp_dir dir{};
  int status = -1;
};

/// Returns programs that nearly only wait, sampled at the same time.
const std::deque<sleeping_run>& sleeping_runs() {
  static const std::deque<sleeping_run> all = [] {
    std::deque<sleeping_run> runs;
    const auto add = [&runs](const std::string& name, const std::string& command) {
      sleeping_run& added = runs.emplace_back();
      added.name = name;
      added.command = command;
    };
    add("several pipes from outside",
        "sleep 3 | { exec 3<&0; sleep 3 | " + sampling_of(planted + " outside 1") + "; }");
    for (const std::string program :
         {"locks 1500", "pipes 1000", "sleeps 1000", "tcp 1000", "unix 1000", "poll 800",
          "select 800", "epoll 800", "woken 800"}) {
      add(program.substr(0, program.find(' ')), "exec " + sampling_of(planted + ' ' + program));
    }
    add("pipe from outside", "sleep 1 | " + sampling_of("cat"));
    add("pipe inside", "exec " + sampling_of("sh -c 'sleep 1 | cat; exit 0'"));
    lotus_test::at_once(runs.size(), 6, [&runs](std::size_t i) {
      runs[i].status = status_in(runs[i].dir, runs[i].command);
    });
    return runs;
  }();
  return all;
}

/// Returns what was sampled of one of these programs.
sampled_run sleeping(const std::string& name) {
  for (const sleeping_run& one : sleeping_runs()) {
    if (one.name == name) return read_run(one.dir, one.status);
  }
  FAIL("no program " << name);
  return {};
}

/// Returns whether the kernel permitted lotus-tool to sample the CPU. Some containers forbid this.
bool cpu_was_sampled(const sampled_run& run) {
  return run.threads["sampling"]["cpu_interval_ns"].integer() != 0;
}

/// Returns the group of threads that began with the function `start`.
json group_of(const sampled_run& run, const std::string& start) {
  for (const json& group : run.threads["groups"].array()) {
    if (group["start"].text() == start) return group;
  }
  FAIL("no group " << start << " in " << run.err);
  return parse_json("{}");
}

double blocked(const json& group) {
  double sum = 0;
  for (const json& part : group["blocked"].array()) sum += part["share"].number();
  return sum;
}

double sum_of_states(const json& group) {
  return group["running"].number() + group["run_queue"].number() + blocked(group);
}

/// Returns whether the kernel lists Unix sockets with their other ends; a module may be missing.
bool kernel_lists_unix_sockets() {
  struct {
    nlmsghdr head{};
    unix_diag_req of{};
  } request;
  request.head.nlmsg_len = sizeof request;
  request.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.of.sdiag_family = AF_UNIX;
  request.of.udiag_states = ~0U;
  nlmsghdr answer{};
  const int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG);
  const bool is_answered =
      send(fd, &request, sizeof request, 0) > 0 && recv(fd, &answer, sizeof answer, MSG_TRUNC) > 0;
  close(fd);
  return is_answered && answer.nlmsg_type != NLMSG_ERROR;
}

}  // namespace

TEST_CASE("a consumer waits for a pool: headline, groups, shares and suggested markers") {
  const temp_dir dir;
  const sampled_run pool = sample(dir, planted + " pool 2000");
  INFO(pool.err);
  CHECK(pool.status == 0);
  const std::string headline = pool.threads["headline"].text();
  INFO(headline);
  CHECK(contains(headline, "main thread waits "));
  CHECK(contains(headline, "`Loader::next` (planted_threads.cpp:"));
  CHECK(contains(headline, "for 2 threads in `worker_loop`"));
  const result stats = run({"stats", dir.path() + "/run"});
  CHECK(stats.status == 1);
  CHECK(contains(stats.err, "'lotus-tool threads "));
  const json main = group_of(pool, "main");
  CHECK(main["threads"].integer() == 1);
  REQUIRE(!main["blocked"].array().empty());
  const json wait = main["blocked"].array().front();
  CHECK(wait["reason"].text() == "condition");
  CHECK(wait["function"].text() == "Loader::next");
  CHECK(wait["waits_for"].text() == "worker_loop");
  const json workers = group_of(pool, "worker_loop");
  CHECK(workers["threads"].integer() == 2);
  for (const json& group : {main, workers}) CHECK(std::abs(sum_of_states(group) - 1) < 1e-6);
  if (!cpu_was_sampled(pool)) return;
  REQUIRE(!workers["functions"].array().empty());
  CHECK(workers["functions"].array().front()["name"].text() == "burn");
  CHECK(workers["functions"].array().front()["share"].number() > 0.8);
  CHECK(contains(headline, " of their CPU time in `burn` "));

  // The collapsed stacks contain samples of running and of waiting threads, with times in
  // microseconds.
  const std::string stacks = dir.path() + "/stacks.txt";
  CHECK(run({"export", dir.path() + "/run", "--format", "collapsed", "-o", stacks}).status == 0);
  std::istringstream lines(read_file(stacks));
  double main_us = 0;
  bool burns = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("main;", 0) == 0) main_us += std::stod(line.substr(line.rfind(' ')));
    burns = burns || (line.rfind("worker_loop;running;", 0) == 0 && contains(line, ";burn "));
    CHECK((!contains(line, "Loader::next") || contains(line, "main;condition;") ||
           contains(line, ";running;")));
  }
  CHECK(burns);
  const double awake = 1 - main["run_queue"].number();
  CHECK(std::abs(main_us / 1e6 - main["seconds"].number() * awake) < 0.05);

  // lotus-tool must suggest markers around the call of Loader::next and before the call of
  // make_batch.
  const std::string source =
      read_file(std::string(LOTUS_SOURCE) + "/tests/tool/threads/planted/planted_threads.cpp");
  const auto line_of = [&source](const std::string& text) {
    std::int64_t line = 1;
    for (std::size_t i = 0; i < source.find(text); ++i) line += source[i] == '\n' ? 1 : 0;
    return line;
  };
  if (main["cpu_samples"].integer() < 10) return;  // main was seen too seldom outside of its wait
  const std::vector<json> markers = pool.threads["suggested_markers"].array();
  REQUIRE(markers.size() == 3);
  CHECK(markers[0]["text"].text() == "lotus::batch_wait wait;");
  CHECK(markers[0]["place"].text() == "before");
  CHECK(markers[0]["line"].integer() == line_of("while (loader.next() >= 0)"));
  CHECK(markers[1]["text"].text() == "wait.consumed(i);");
  CHECK(markers[1]["place"].text() == "after");
  CHECK(markers[1]["line"].integer() == markers[0]["line"].integer());
  CHECK(markers[2]["text"].text() == "LOTUS_BATCH_PREPROCESSED(i);");
  CHECK(markers[2]["place"].text() == "before");
  CHECK(markers[2]["line"].integer() == line_of("    make_batch();"));
  CHECK(contains(pool.err, " before this line: LOTUS_BATCH_PREPROCESSED(i);"));
}

TEST_CASE("a static program without optimization and debug information is sampled too") {
  const temp_dir dir;
  const sampled_run pool = sample(dir, std::string(PLANTED_STATIC) + " pool 1500");
  INFO(pool.err);
  CHECK(contains(pool.threads["headline"].text(), "`Loader::next`"));
  CHECK(contains(pool.threads["headline"].text(), "for 2 threads in `worker_loop`"));
}

TEST_CASE("a wait for a lock names the threads that hold the lock") {
  const sampled_run locks = sleeping("locks");
  INFO(locks.err);
  const json wait = group_of(locks, "main")["blocked"].array().front();
  CHECK(wait["reason"].text() == "lock");
  CHECK(wait["function"].text() == "want_lock");
  CHECK(wait["what"].text() == "table_lock");
  CHECK(contains(locks.threads["headline"].text(),
                 " for the lock `table_lock` held by 1 thread in `hold_lock`"));
  CHECK(wait["waits_for"].text() == "hold_lock");
  CHECK(wait["sure"].boolean());
  CHECK(wait["share"].number() > 0.5);
  CHECK(group_of(locks, "hold_lock")["blocked"].array().front()["reason"].text() == "sleep");
  CHECK(locks.threads["suggested_markers"].array().empty());
}

TEST_CASE("waits for a pipe and sleeps are recognized") {
  const sampled_run pipes = sleeping("pipes");
  INFO(pipes.err);
  const json wait = group_of(pipes, "main")["blocked"].array().front();
  CHECK(wait["reason"].text() == "pipe");
  CHECK(wait["function"].text() == "pipes");
  const sampled_run sleeps = sleeping("sleeps");
  INFO(sleeps.err);
  const json sleep = group_of(sleeps, "main")["blocked"].array().front();
  CHECK(sleep["reason"].text() == "sleep");
  CHECK(sleep["function"].text() == "sleeps");
}

TEST_CASE("the other end of a pipe is found, or it is outside of the recorded program") {
  const sampled_run outside = sleeping("pipe from outside");
  INFO(outside.err);
  REQUIRE(outside.status == 0);
  CHECK(contains(outside.err, "for input from outside (standard"));
  const sampled_run inside = sleeping("pipe inside");
  INFO(inside.err);
  const json wait = group_of(inside, "main of cat")["blocked"].array().front();
  CHECK(wait["reason"].text() == "pipe");
  CHECK_FALSE(wait["outside"].boolean());
  CHECK(wait["waits_for"].text() == "main of sleep");
  CHECK(wait["sure"].boolean());
}

TEST_CASE("the other ends of several pipes are found, or are outside of the recorded program") {
  for (const std::string call : {"poll", "select", "epoll", "woken"}) {
    INFO(call);
    const sampled_run inside = sleeping(call);
    INFO(inside.err);
    const json wait = group_of(inside, "main")["blocked"].array().front();
    CHECK(wait["reason"].text() == "poll");
    CHECK(wait["function"].text() == "receive_any");
    CHECK_FALSE(wait["outside"].boolean());
    // What wakes a thread through an event of its own process is not known.
    REQUIRE(wait.has("waits_for") == (call != "woken"));
    CHECK(wait["what"].text() == (call == "woken" ? "several pipes or events" : "several pipes"));
    if (call == "woken") continue;
    CHECK(wait["waits_for"].text() == "main of planted_threads");
    CHECK(wait["sure"].boolean());
  }
  const sampled_run outside = sleeping("several pipes from outside");
  INFO(outside.err);
  REQUIRE(outside.status == 0);
  CHECK(contains(outside.err, "for input from outside (several pipes)"));
}

TEST_CASE("the other end of a socket is found, also if the program polls") {
  for (const auto* kind : {"tcp", "unix"}) {
    INFO(kind);
    if (std::string(kind) == "unix" && !kernel_lists_unix_sockets()) continue;
    const sampled_run inside = sleeping(kind);
    INFO(inside.err);
    const json wait = group_of(inside, "main")["blocked"].array().front();
    CHECK(wait["reason"].text() == "socket");
    CHECK(wait["function"].text() == "receive");
    CHECK_FALSE(wait["outside"].boolean());
    REQUIRE(wait.has("waits_for"));
    CHECK(wait["waits_for"].text() == "main of planted_threads");
    CHECK(wait["sure"].boolean());
    const std::vector<json> chain = inside.threads["chain"].array();
    if (!chain[0]["waits"].boolean()) continue;  // it mostly waited for a CPU
    REQUIRE(chain.size() == 2);
    CHECK(chain[1]["start"].text() == "main of planted_threads");
  }
  // A server that is not recorded.
  const int door = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof address;
  auto* const at = reinterpret_cast<sockaddr*>(&address);
  REQUIRE(bind(door, at, bytes) == 0);
  REQUIRE(listen(door, 1) == 0);
  REQUIRE(getsockname(door, at, &bytes) == 0);
  std::thread server([door] {
    const int fd = accept(door, nullptr, nullptr);
    // Long enough for 20 samples also if taking one is slow, as below a sanitizer.
    for (int i = 0; i < 200; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(15));
      if (send(fd, "x", 1, MSG_NOSIGNAL) != 1) break;
    }
    close(fd);
    close(door);
  });
  const std::string port = std::to_string(ntohs(address.sin_port));
  const temp_dir dir;
  const sampled_run outside = sample(dir, planted + " client " + port);
  server.join();
  INFO(outside.err);
  CHECK(contains(outside.threads["headline"].text(),
                 "for input from outside (127.0.0.1:" + port + ")"));
}

TEST_CASE("a program that only runs has no waits") {
  const temp_dir dir;
  const sampled_run burns = sample(dir, planted + " burn 700");
  INFO(burns.err);
  const json main = group_of(burns, "main");
  CHECK(blocked(main) < 0.1);
  if (!cpu_was_sampled(burns)) return;
  CHECK(main["functions"].array().front()["name"].text() == "burn");
  CHECK(contains(burns.threads["headline"].text(), "of its CPU time in `burn`"));
}

TEST_CASE("exit status, signals, and the program's own profiler are not affected") {
  const temp_dir dir;
  CHECK(sample(dir, planted + " status 1", false).status == 7);
  CHECK(sample(dir, planted + " killed 1", false).status == 128 + SIGKILL);
  // The kernel sends some of these signals late if other programs use the CPUs.
  constexpr int tries = 3;
  int arrived = 0;
  for (int i = 0; i < tries && arrived == 0; ++i) {
    if (sample(dir, planted + " profiled 1", false).status == 0) ++arrived;
  }
  CHECK(arrived > 0);
}

TEST_CASE("threads of started processes are sampled") {
  const temp_dir dir;
  const sampled_run shell = sample(dir, "sh -c '\"" + planted + "\" pool 1200; sleep 0.2'");
  INFO(shell.err);
  CHECK(group_of(shell, "main")["blocked"].array().front()["reason"].text() == "process");
  CHECK(group_of(shell, "worker_loop")["threads"].integer() == 2);
  CHECK(contains(shell.threads["headline"].text(), "`planted_threads` waits "));
}

TEST_CASE("a program with markers is sampled too, and its own output stays the same") {
  const temp_dir dir;
  const sampled_run recorded = sample(dir, std::string(LOTUS_RECORDING_PROGRAM), false);
  INFO(recorded.err);
  CHECK(contains(recorded.err, " batches/s)"));
  CHECK_FALSE(contains(recorded.err, "has no markers"));
}

TEST_CASE("a program without markers is not sampled with --no-threads") {
  const temp_dir dir;
  const std::string command = "cd '" + dir.path() + "' && exec '" + LOTUS_TOOL_PROGRAM +
                              "' run --no-threads --dir run -- " + planted +
                              " sleeps 200 >out 2>err";
  CHECK(std::system(command.c_str()) == 0);
  CHECK(contains(read_file(dir.path() + "/err"), "executed no marker such as LOTUS_SCOPE"));
  const result none = run({"threads", dir.path()});
  CHECK(none.status == 1);
  CHECK(contains(none.err, "no samples of threads; record a run with 'lotus-tool run -- PROGRAM'"));
}

TEST_CASE("the runtime of OpenMP is named, whether or not its functions have names") {
  for (const char* const function : {"libgomp.so.1.0.0+0x1f5e0", "gomp_team_barrier_wait_end"}) {
    source_place place;
    place.function = function;
    place.module = "/usr/lib/x86_64-linux-gnu/libgomp.so.1.0.0";
    CHECK(shown_work(place) ==
          "the runtime of OpenMP (libgomp.so.1.0.0), which shares out work or spins until there is "
          "some");
    place.module = "/home/user/decoder";
    place.has_name = true;
    CHECK(shown_work(place) == std::string("`") + function + '`');
  }
}

TEST_CASE("waits whose code is unknown are shown without a function") {
  const temp_dir dir;
  dir.file(".lotus_threads_1_1",
           "lotus-threads,1\nsampling,10000000,10,0.01,1\nmodule,/nowhere\nplace,0,10\nstack,\n"
           "stack,0\nthread,1,1,100,100,1000000000,0,0,prog\n"
           "thread,1,2,100,0,1000000000,1000000000,0,work\n"
           "wait,0,0,100,condition,0,2,\nwait,0,1,20,condition,0,2,\ncpu,1,0,100\n");
  const result printed = run({"threads", dir.path(), "--json"});
  INFO(printed.err);
  CHECK(printed.status == 0);
  const json main = parse_json(printed.out)["groups"].array().front();
  CHECK(main["blocked"].array().front()["function"].text().empty());
  CHECK(run({"threads", dir.path()}).status == 0);
}

TEST_CASE("the folder of a loader has the samples of the whole program") {
  const temp_dir dir;
  dir.file(".lotus_threads_1_1",
           "lotus-threads,1\nsampling,10000000,10,0.01,1\nmodule,/nowhere\nplace,0,10\nstack,0\n"
           "thread,1,1,100,100,1000000000,0,0,prog\nwait,0,0,100,sleep,0,0,\n");
  const std::string loader = dir.path() + "/train";
  std::filesystem::create_directory(loader);
  for (const std::string& of : {loader, loader + '/'}) {
    const result shown = run({"threads", of});
    CHECK(shown.status == 0);
    CHECK(contains(shown.err, "the samples are of all loaders of the program"));
    CHECK(shown.out == run({"threads", dir.path()}).out);
  }
  CHECK(run({"threads", dir.path() + "/mistyped"}).status == 1);
}

TEST_CASE("damaged lines of a file of samples are reported and ignored") {
  const temp_dir dir;
  const std::string good =
      "lotus-threads,1\nsampling,0,10,0.01,1\nmodule,/nowhere\nplace,0,10\nstack,0\n"
      "thread,1,1,100,100,1000000000,0,0,prog\n";
  dir.file(".lotus_threads_1_1", good +
                                     "wait,0,0,100,sleep,0,0,\nplace,7,10\nstack,9\n"
                                     "cpu,0,5,1\nwait,0,0,1,never,0,0,\nwait,9,0,1,sleep,0,0,\n");
  const result printed = run({"threads", dir.path(), "--json"});
  INFO(printed.err);
  CHECK(printed.status == 0);
  CHECK(contains(printed.err, "no sample of a thread"));
  const json main = parse_json(printed.out)["groups"].array().front();
  CHECK(main["blocked"].array().size() == 1);
  CHECK(main["blocked"].array().front()["share"].number() == 1);
  const temp_dir other;
  other.file(".lotus_threads_1_1", "something else\n");
  CHECK(run({"threads", other.path()}).status == 1);
}
