// Tests the collectors, with which the library controls profilers, and LOTUS_MAP_REGION. Uses
// stand-ins for the libraries of the profilers' vendors.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <exception>
#include <string>
#include <thread>

#include "catch.hpp"
#include "map_test.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::map_test;
using namespace lotus::tool_test;

namespace {

std::string lines_of(const temp_dir& dir, const char* name) {
  try {
    return read_file(dir.path() + '/' + name);
  } catch (const std::exception&) {
    return {};
  }
}

/// Runs the probe with the stand-in for VTune's library. Returns the calls that this library
/// received.
std::string reported_itt(const std::string& mode, environment more = {},
                         const std::string& diagnostics = "") {
  const temp_dir dir;
  environment all{{"LOTUS_COLLECTOR", "itt"},
                  {"INTEL_LIBITTNOTIFY64", LOTUS_STAND_IN_ITT},
                  {"STAND_IN_LOG", dir.path() + "/calls"},
                  {"LOTUS_MAP_SLEEP_MS", "1"}};
  all.insert(all.end(), more.begin(), more.end());
  const result r = execute({LOTUS_MAP_PROBE, mode}, all);
  CHECK(r.status == 0);
  CHECK(r.err == diagnostics);
  return lines_of(dir, "calls");
}

/// The pipes through which a program controls perf. A test may answer in place of perf.
struct perf_pipes {
  temp_dir dir;
  std::string control = dir.path() + "/ctl";
  std::string answers = dir.path() + "/ack";
  std::string variable = "fifo:" + control + ',' + answers;

  perf_pipes() {
    REQUIRE(::mkfifo(control.c_str(), 0600) == 0);
    REQUIRE(::mkfifo(answers.c_str(), 0600) == 0);
  }
};

}  // namespace

TEST_CASE("without a collector every block runs exactly once") {
  const std::string expected = "plain 1\nreturn 7\nthrown\nmade 5\n";
  for (const char* collector : {"none", "auto", ""}) {
    const result r = execute({LOTUS_MAP_PROBE, "flow"}, {{"LOTUS_COLLECTOR", collector}});
    CHECK(r.out == expected);
    CHECK(r.err.empty());
  }
}

TEST_CASE("an unknown or missing collector is reported once, and the program continues") {
  const auto says = [](const char* collector, const char* text) {
    const result r = execute({LOTUS_MAP_PROBE, "flow"},
                             {{"LOTUS_COLLECTOR", collector}, {"INTEL_LIBITTNOTIFY64", ""}});
    INFO(r.err);
    CHECK(r.out == "plain 1\nreturn 7\nthrown\nmade 5\n");
    CHECK(contains(r.err, text));
    CHECK(r.err.find('\n') == r.err.size() - 1);
  };
  says("vtune", "LOTUS_COLLECTOR=vtune is not known");
  says("itt", "INTEL_LIBITTNOTIFY64");
  says("uprof", "amdProfileResume");
  says("perf", "LOTUS_PERF_CONTROL");
  says("callgrind", "valgrind does not run this program");
}

TEST_CASE("a region warms up, collects its passes, and pauses however it is left") {
  std::string diagnostics;
  for (const char* left : {"Break", "Return", "Throw"}) {
    diagnostics += std::string("lotus: region ") + left +
                   " was left during its warm-up, by break, return or an exception, so nothing was "
                   "collected; set LOTUS_MAP_WARMUP=0 to collect from its first pass\n";
  }
  CHECK(reported_itt("flow", {}, diagnostics) ==
        "init\nresume\npause\n"  // the region Plain
        "resume\npause\n"  // the region Later; the other regions are left during their first pass
  );
  const std::string at_once = reported_itt("flow", {{"LOTUS_MAP_WARMUP", "0"}});
  CHECK(at_once ==
        "init\nresume\npause\nresume\npause\nresume\npause\nresume\npause\nresume\npause\n");
  CHECK(reported_itt("flow", {{"LOTUS_MAP_OP", "Later"}, {"LOTUS_MAP_PASSES", "3"}}) ==
        "init\nresume\npause\nresume\npause\nresume\npause\n");
}

TEST_CASE("nested calls are counted, and nothing is collected after detach") {
  CHECK(reported_itt("nested") == "init\nresume\npause\nresume\npause\npause\ndetach\n");
}

TEST_CASE("with LOTUS_ANNOTATE=itt every scope is a task, with and without a log") {
  for (const char* log : {"", "/log"}) {
    const temp_dir dir;
    const result r = execute({LOTUS_MAP_PROBE, "scopes"},
                             {{"LOTUS_ANNOTATE", "itt"},
                              {"LOTUS_COLLECTOR", "none"},
                              {"INTEL_LIBITTNOTIFY64", LOTUS_STAND_IN_ITT},
                              {"LOTUS_LOG_FILE", *log == '\0' ? log : dir.path() + log},
                              {"STAND_IN_LOG", dir.path() + "/calls"}});
    CHECK(r.err.empty());
    CHECK(lines_of(dir, "calls") ==
          "init\ndomain lotus\nbegin Outer\nbegin BatchPreprocessed\nbegin Inner\nend\nend\n"
          "begin Transform\nbegin Add\nend\nbegin Double\nend\nend\n"
          "begin iteration_7\nend\nend\n");
    std::string logged;
    for (const std::string& name : dir.names()) {
      if (contains(name, "log_worker")) logged += read_file(dir.path() + '/' + name);
    }
    CHECK(contains(logged, "SInner,") == (*log != '\0'));
    CHECK(contains(logged, "SDouble,") == (*log != '\0'));
  }
  const result r = execute({LOTUS_MAP_PROBE, "scopes"}, {{"LOTUS_ANNOTATE", "vtune"}});
  CHECK(r.err ==
        "lotus: LOTUS_ANNOTATE=vtune is not known; it can be itt, nvtx and torch, with commas\n");
}

TEST_CASE("with LOTUS_ANNOTATE=nvtx every scope is a range in the domain lotus") {
  const std::string ranges =
      "push Outer\npush BatchPreprocessed\npush Inner\npop\npop\n"
      "push Transform\npush Add\npop\npush Double\npop\npop\n"
      "push iteration_7\npop\npop\n";
  const temp_dir dir;
  const result r =
      execute({LOTUS_MAP_PROBE, "scopes"}, {{"LOTUS_ANNOTATE", "nvtx"},
                                            {"NVTX_INJECTION64_PATH", LOTUS_STAND_IN_NVTX},
                                            {"STAND_IN_LOG", dir.path() + "/calls"}});
  CHECK(r.err.empty());
  CHECK(lines_of(dir, "calls") == "init 3\ndomain lotus\n" + ranges);
  const result alone = execute({LOTUS_MAP_PROBE, "scopes"},
                               {{"LOTUS_ANNOTATE", "nvtx"}, {"NVTX_INJECTION64_PATH", ""}});
  CHECK(alone.err ==
        "lotus: LOTUS_ANNOTATE=nvtx needs NVTX_INJECTION64_PATH; run the program with nsys\n");
  const result wrong =
      execute({LOTUS_MAP_PROBE, "scopes"},
              {{"LOTUS_ANNOTATE", "nvtx"}, {"NVTX_INJECTION64_PATH", LOTUS_STAND_IN_ITT}});
  CHECK(wrong.err == "lotus: " LOTUS_STAND_IN_ITT
                     " is not an NVIDIA collector: its InitializeInjectionNvtx2 is missing\n");
}

TEST_CASE("VTune and Nsight get batch and stage numbers, and asynchronous operations") {
  for (const char* log : {"", "/log"}) {
    for (const bool itt : {true, false}) {
      const temp_dir dir;
      const result r = execute({LOTUS_MAP_PROBE, "numbers"},
                               {{"LOTUS_ANNOTATE", itt ? "itt" : "nvtx"},
                                {"LOTUS_COLLECTOR", "none"},
                                {"INTEL_LIBITTNOTIFY64", LOTUS_STAND_IN_ITT},
                                {"NVTX_INJECTION64_PATH", LOTUS_STAND_IN_NVTX},
                                {"LOTUS_LOG_FILE", *log == '\0' ? log : dir.path() + log},
                                {"STAND_IN_LOG", dir.path() + "/calls"},
                                {"STAND_IN_NUMBERS", dir.path() + "/numbers"}});
      CHECK(r.err.empty());
      CHECK(r.status == 0);
      const std::string numbers = lines_of(dir, "numbers");
      INFO(numbers);
      if (itt) {
        CHECK(lines_of(dir, "calls") ==
              "init\ndomain lotus\nbegin overlapped Load\nbegin BatchWait\nbegin Decode\nend\nend\n"
              "end overlapped\nbegin overlapped Load\nend overlapped\n");
        CHECK(contains(numbers, "\nnumber 41\nnumber 7\noverlapped number "));
        CHECK(numbers.find("overlapped number ") == 0);
      } else {
        CHECK(
            lines_of(dir, "calls") ==
            "init 3\ndomain lotus\nstart Load\npush BatchWait\npush Decode\npop\npop\nfinish 101\n"
            "start Load\nfinish 102\n");
        CHECK(contains(numbers, "\n1 41\n1 7\n1 "));
      }
    }
  }
}

TEST_CASE("one program can be annotated for several profilers at once") {
  const temp_dir dir;
  const result r =
      execute({LOTUS_MAP_PROBE, "scopes"}, {{"LOTUS_ANNOTATE", "itt,nvtx,torch"},
                                            {"INTEL_LIBITTNOTIFY64", LOTUS_STAND_IN_ITT},
                                            {"NVTX_INJECTION64_PATH", LOTUS_STAND_IN_NVTX},
                                            {"STAND_IN_LOG", dir.path() + "/calls"}});
  CHECK(r.err.empty());
  CHECK(contains(lines_of(dir, "calls"), "begin Inner\npush Inner\npop\nend\n"));
}

TEST_CASE("scopes in a signal handler are tasks too, even without recording") {
  const temp_dir dir;
  const result r =
      execute({LOTUS_MAP_PROBE, "handler", "2000"}, {{"LOTUS_ANNOTATE", "itt"},
                                                     {"INTEL_LIBITTNOTIFY64", LOTUS_STAND_IN_ITT},
                                                     {"STAND_IN_LOG", dir.path() + "/calls"}});
  CHECK(r.status == 0);
  CHECK(r.err.empty());
  CHECK(contains(read_file(dir.path() + "/calls"), "begin Handler\n"));
}

TEST_CASE("VTune is asked for the handle of a name once, not for every task") {
  const temp_dir dir;
  execute({LOTUS_MAP_PROBE, "handler", "300"}, {{"LOTUS_ANNOTATE", "itt"},
                                                {"INTEL_LIBITTNOTIFY64", LOTUS_STAND_IN_ITT},
                                                {"STAND_IN_LOG", dir.path() + "/calls"},
                                                {"STAND_IN_HANDLES", dir.path() + "/handles"}});
  const auto lines = [&](const char* file) {
    const std::string text = read_file(dir.path() + file);
    return std::count(text.begin(), text.end(), '\n');
  };
  CHECK(lines("/calls") > 100);
  // The library requests one handle for each name. If a signal handler interrupts a scope that is
  // requesting a handle, the handler requests one too.
  CHECK(lines("/handles") >= 2);
  CHECK(lines("/handles") <= 4);
}

TEST_CASE("uProf is called by the names of version 4.0 or 5.1, never by both") {
  const auto reported = [](const char* library) {
    const temp_dir dir;
    const result r =
        execute({LOTUS_MAP_PROBE, "nested"}, {{"LD_PRELOAD", library},
                                              {"LOTUS_COLLECTOR", "auto"},
                                              {"STAND_IN_LOG", dir.path() + "/calls"}});
    CHECK(r.err.empty());
    return lines_of(dir, "calls");
  };
  CHECK(reported(LOTUS_STAND_IN_UPROF) == "resume 1\npause 1\nresume 1\npause 1\npause 1\n");
  CHECK(reported(LOTUS_STAND_IN_UPROF_STRICT) ==
        "strict resume\nstrict pause\nstrict resume\nstrict pause\nstrict pause\n");
}

TEST_CASE("a vendor call that never returns is abandoned with one message") {
  const temp_dir dir;
  const result r =
      execute({LOTUS_MAP_PROBE, "nested"}, {{"LD_PRELOAD", LOTUS_STAND_IN_UPROF_STRICT},
                                            {"LOTUS_COLLECTOR", "uprof"},
                                            {"LOTUS_COLLECTOR_TIMEOUT_MS", "200"},
                                            {"STAND_IN_HANGS", "1"},
                                            {"STAND_IN_LOG", dir.path() + "/calls"}});
  CHECK(r.status == 0);
  CHECK(r.out == "inner\n");
  CHECK(r.err == "lotus: the uprof collector does not answer; the program goes on without it\n");
  CHECK(lines_of(dir, "calls") == "strict resume\nstrict pause\n");
}

TEST_CASE("perf that does not answer is abandoned with one message") {
  const perf_pipes pipes;
  const result r = execute({LOTUS_MAP_PROBE, "flow"}, {{"LOTUS_COLLECTOR", "perf"},
                                                       {"LOTUS_PERF_CONTROL", pipes.variable},
                                                       {"LOTUS_COLLECTOR_TIMEOUT_MS", "50"}});
  CHECK(contains(r.out, "made 5\n"));
  CHECK(r.err == "lotus: the perf collector does not answer; the program goes on without it\n");
}

TEST_CASE("perf is left out if one end of its channel cannot be opened") {
  const perf_pipes pipes;
  const std::string none = pipes.dir.path() + "/none";
  for (const std::string& ends : {pipes.control + ',' + none, none + ',' + pipes.answers}) {
    const result r = execute({LOTUS_MAP_PROBE, "flow"}, {{"LOTUS_COLLECTOR", "perf"},
                                                         {"LOTUS_PERF_CONTROL", "fifo:" + ends},
                                                         {"LOTUS_COLLECTOR_TIMEOUT_MS", "50"}});
    CHECK(contains(r.out, "made 5\n"));
    CHECK(contains(r.err, "cannot open perf's control channel"));
    CHECK(contains(r.err, "No such file or directory"));
    CHECK_FALSE(contains(r.err, "does not answer"));
  }
}

TEST_CASE("a process forked while its parent waits for a collector does not wait") {
  const perf_pipes pipes;
  const result r =
      execute({LOTUS_MAP_PROBE, "fork_meanwhile"}, {{"LOTUS_COLLECTOR", "perf"},
                                                    {"LOTUS_PERF_CONTROL", pipes.variable},
                                                    {"LOTUS_COLLECTOR_TIMEOUT_MS", "1000"}});
  CHECK(r.out == "child 3\n");
}

TEST_CASE("perf gets enable and disable commands, and its answers are awaited") {
  const perf_pipes pipes;
  const int in = ::open(pipes.control.c_str(), O_RDWR | O_CLOEXEC);
  const int out = ::open(pipes.answers.c_str(), O_RDWR | O_CLOEXEC);
  std::string reported;
  // This thread acts as perf: it reads the commands and answers each of them.
  std::thread perf([&] {
    char text[64];
    while (reported.find("end") == std::string::npos) {
      const ssize_t n = ::read(in, text, sizeof text);
      if (n <= 0) break;
      reported.append(text, static_cast<std::size_t>(n));
      if (::write(out, "ack\n", 5) != 5) break;
    }
  });
  const result r = execute({LOTUS_MAP_PROBE, "nested"}, {{"LOTUS_PERF_CONTROL", pipes.variable}});
  CHECK(::write(in, "end", 3) == 3);
  perf.join();
  ::close(in);
  ::close(out);
  CHECK(r.err.empty());
  CHECK(reported == "enable\ndisable\nenable\ndisable\ndisable\nend");
}

TEST_CASE("the compiler does not move a pure function out of its region") {
  if (!sampling_allowed()) return;
  const temp_dir dir;
  const result r = execute({LOTUS_MAP_PROBE, "fence"}, {{"LOTUS_COLLECTOR", "builtin"},
                                                        {"LOTUS_LOG_FILE", dir.path() + "/log"}});
  CHECK(r.out == "7 inside 5\n");
}

TEST_CASE("a region is logged with and without a collector") {
  for (const char* collector : {"none", "itt"}) {
    const temp_dir dir;
    execute({LOTUS_MAP_PROBE, "flow"}, {{"LOTUS_COLLECTOR", collector},
                                        {"INTEL_LIBITTNOTIFY64", LOTUS_STAND_IN_ITT},
                                        {"LOTUS_MAP_SLEEP_MS", "1"},
                                        {"LOTUS_MAP_WARMUP", "0"},
                                        {"LOTUS_LOG_FILE", dir.path() + "/log"}});
    std::string log;
    for (const std::string& name : dir.names()) {
      if (contains(name, "log_worker_pid_")) log += read_file(dir.path() + '/' + name);
    }
    for (const char* line : {"SPlain,", "SBreak,", "SReturn,", "SThrow,", "SLater,"}) {
      CHECK(contains(log, line));
    }
  }
}

TEST_CASE("if the kernel forbids sampling, the message says what to change") {
  const result r = execute({LOTUS_MAP_PROBE, "seccomp", "flow"}, {{"LOTUS_COLLECTOR", "builtin"}});
  CHECK(contains(r.out, "made 5\n"));
  for (const char* part : {"kernel.perf_event_paranoid", "CAP_PERFMON", "seccomp", "callgrind"}) {
    CHECK(contains(r.err, part));
  }
  CHECK(r.err.find('\n') == r.err.size() - 1);
}
