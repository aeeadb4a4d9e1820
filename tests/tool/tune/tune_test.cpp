// Tests lotus-tool tune with a real program, whose stages sleep.
#include <pty.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

const std::string program = LOTUS_TUNED_PROGRAM;

/// Runs `lotus-tool tune OPTIONS --json -- PROGRAM`, with the logs in a temporary directory.
result tune(const temp_dir& dir, std::vector<std::string> options,
            const std::vector<std::string>& command) {
  unsetenv("LOTUS_LOG_FILE");
  options.insert(options.begin(), {"tune", "-q", "--json", "--dir", dir.path() + "/logs"});
  options.emplace_back("--");
  options.insert(options.end(), command.begin(), command.end());
  return run(options);
}

/// Returns whether a process exists and has not ended. A zombie, whose exit status is not read yet,
/// has ended.
bool is_running(pid_t id) {
  const std::string stat = "/proc/" + std::to_string(id) + "/stat";
  return std::filesystem::exists(stat) && !contains(read_file(stat), ") Z ");
}

}  // namespace

TEST_CASE("tune finds settings as good as the best of 24 in at most 5 runs") {
  const temp_dir dir;
  const result r =
      tune(dir, {"--set", "workers=1..8", "--set", "prefetch=1,2,4", "--for", "1s", "--runs", "5"},
           {program, "{workers}", "{prefetch}"});
  INFO(r.out << r.err);
  REQUIRE(r.status == 0);
  const json j = parse_json(r.out);
  // Runs with all 24 settings give 52 batches/s with 1 worker, and 193 to 195 with at least 4
  // workers and a prefetch of at least 2. The consumer cannot receive more. With a prefetch of 1,
  // this throughput requires 8 workers.
  const double start = j["runs"][0]["batches_per_s"].number();
  CHECK(j["batches_per_s"].number() > 0.95 * 3.73 * start);
  CHECK(j["best"]["workers"].integer() >= 4);
  CHECK(j["best"]["workers"].integer() <= 5);
  CHECK(j["best"]["prefetch"].integer() >= 2);
  CHECK(j["runs"].size() <= 5);
  CHECK(j["runs"][0]["predicted"].is_null());
  CHECK(j["runs"][1]["predicted"].number() > 2 * start);
  CHECK(contains(j["command"].text(), "tuned_program "));
  // Other commands can analyze the runs that tune has recorded. For the fastest run, diagnose must
  // name the same limit as tune.
  CHECK(run({"diagnose", j["runs"][0]["dir"].text()}).status == 0);
  const json* fastest = nullptr;
  const std::vector<json> trials = j["runs"].array();
  for (const json& trial : trials) {
    if (trial["values"].canonical() != j["best"].canonical()) continue;
    const bool faster = fastest == nullptr ||
                        (*fastest)["batches_per_s"].number() < trial["batches_per_s"].number();
    if (faster) fastest = &trial;
  }
  REQUIRE(fastest != nullptr);
  const json judged = parse_json(run({"diagnose", (*fastest)["dir"].text(), "--json"}).out);
  CHECK(contains(judged["verdict"].text(), j["limit"].text()));
}

TEST_CASE("nothing runs after a trial, although the program ignores SIGTERM and starts processes") {
  const temp_dir dir;
  const std::string ids = dir.path() + "/ids";
  const result r = tune(dir, {"--set", "workers=2,3", "--for", "1s", "--runs", "1"},
                        {program, "{workers}", "2", "ignores-and-forks", ids});
  INFO(r.out << r.err);
  REQUIRE(r.status == 0);
  const json j = parse_json(r.out);
  CHECK(j["runs"][0]["batches"].integer() >= 5);
  CHECK(contains(j["runs"][0]["notes"][0].text(), "ignored SIGTERM"));
  std::istringstream list(read_file(ids));
  std::size_t seen = 0;
  for (pid_t id = 0; list >> id; ++seen) CHECK_FALSE(is_running(id));
  CHECK(seen == 2);
}

TEST_CASE("tune says in one line why a program cannot be measured") {
  const temp_dir dir;
  const result fails = tune(dir, {"--set", "workers=1..4"}, {program, "{workers}", "1", "fails"});
  CHECK(fails.status == 1);
  const json first = parse_json(fails.out)["runs"][0];
  CHECK(contains(first["fault"].text(), "exit status 3; it printed last: no such dataset"));
  CHECK(parse_json(fails.out)["best"].is_null());
  const result silent = tune(dir, {"--set", "workers=1..4", "--for", "200ms"},
                             {program, "{workers}", "1", "nothing"});
  CHECK(contains(silent.out, "recorded nothing in 2"));
  CHECK(contains(tune(dir, {"--set", "workers=1,2"}, {"./nowhere", "{workers}"}).out,
                 "./nowhere: cannot be run"));
}

TEST_CASE("tune reports dropped and lost records of a run once each") {
  const temp_dir dir;
  const std::string script = "folder=$(dirname \"$LOTUS_LOG_FILE\"); mkdir -p \"$folder\"; cp " +
                             traces() +
                             "/c_ooo_w4/b8_gpu4/* \"$folder\"; printf 'pid 1\\nrecords 5 7\\n" +
                             "lost 1234\\n' > \"$folder/.lotus_info_1_1\"; : {workers}";
  const result r = tune(dir, {"--set", "workers=2,3", "--runs", "1"}, {"sh", "-c", script});
  INFO(r.out << r.err);
  const json notes = parse_json(r.out)["runs"][0]["notes"];
  REQUIRE(notes.size() == 2);
  CHECK(contains(notes[0].text(), "7 of 12 records were dropped"));
  CHECK(contains(notes[1].text(), "1,234 records of killed processes existed only in memory"));
}

TEST_CASE("tune runs the best order, without having tried it before") {
  const temp_dir dir;
  const result r =
      tune(dir, {"--set", "workers=2,4", "--set", "order=1,0", "--for", "1s", "--runs", "4"},
           {program, "{workers}", "1", "order", "{order}"});
  INFO(r.out << r.err);
  REQUIRE(r.status == 0);
  // If batches are delivered in order, one slow batch in eight holds up all workers: 46 batches/s
  // with 2 workers, and 56 with 4. If they are delivered in any order, the workers never wait: 69
  // batches/s with 2 workers, and 138 with 4.
  const json j = parse_json(r.out);
  CHECK(j["best"]["order"].integer() == 0);
  CHECK(j["best"]["workers"].integer() == 4);
  CHECK(j["runs"][1]["values"]["order"].integer() == 0);
  CHECK(j["runs"][1]["predicted"].number() > 1.3 * j["runs"][0]["batches_per_s"].number());
}

TEST_CASE("tune learns that prefetch limits the batches of all workers together") {
  // With "starves", a run with 5 workers and a prefetch of 2 records only 2 workers, so nothing can
  // be predicted from its records.
  const std::string mode = GENERATE("total", "starves");
  const temp_dir dir;
  const result r = tune(
      dir, {"--set", "workers=1..6", "--set", "prefetch=1,2,4,8", "--for", "1s", "--runs", "5"},
      {program, "{workers}", "{prefetch}", mode});
  INFO(r.out << r.err);
  REQUIRE(r.status == 0);
  const json j = parse_json(r.out);
  // With at least 4 workers, 8 batches in flight give 198 batches/s, and 4 batches in flight 133.
  CHECK(j["best"]["prefetch"].integer() == 8);
  CHECK(j["best"]["workers"].integer() >= 4);
}

TEST_CASE("tune compares batch sizes by samples, and tries another size") {
  const temp_dir dir;
  const result r = tune(
      dir,
      {"--set", "workers=1,2", "--set", "batch_size=4,8,16,32,64", "--for", "1s", "--runs", "5"},
      {program, "{workers}", "2", "batch", "{batch_size}"});
  INFO(r.out << r.err);
  REQUIRE(r.status == 0);
  // With 2 workers, batches of 4 samples give 444 samples/s, and batches of 64 samples 2667.
  const json j = parse_json(r.out);
  CHECK(j["best"]["batch_size"].integer() == 64);
  CHECK(j["best"]["workers"].integer() == 2);
}

TEST_CASE("tune finds the threads of stages, with a consumer and without one") {
  const temp_dir dir;
  const std::vector<std::string> options{
      "--set", "stage:Read=1..4", "--set", "stage:Decode=1..6", "--for", "1s", "--runs", "5"};
  // The consumer can receive 167 batches/s, for which 2 readers and 4 decoders are enough. The
  // second call of tune() runs the program without a consumer, so the stages are the limit.
  const result r = tune(dir, options, {program, "{stage:Read}", "{stage:Decode}", "stages"});
  INFO(r.out << r.err);
  REQUIRE(r.status == 0);
  const json j = parse_json(r.out);
  const double start = j["runs"][0]["batches_per_s"].number();
  CHECK(j["best"]["stage:Read"].integer() >= 2);
  CHECK(j["best"]["stage:Decode"].integer() >= 4);
  CHECK(j["batches_per_s"].number() > 0.9 * 4 * start);
  CHECK(j["runs"][1]["predicted"].number() > 2 * start);
  const temp_dir other;
  const result push = tune(other, options, {program, "{stage:Read}", "{stage:Decode}", "pushes"});
  INFO(push.out << push.err);
  REQUIRE(push.status == 0);
  CHECK(parse_json(push.out)["best"]["stage:Read"].integer() >= 3);
  CHECK(parse_json(push.out)["best"]["stage:Decode"].integer() == 6);
}

TEST_CASE("tune says in one line why a program that needs more than it gets fails") {
  const temp_dir dir;
  const auto fault = [&dir](const std::string& mode, const std::string& time) {
    const result r =
        tune(dir, {"--set", "workers=1,2", "--for", time}, {program, "{workers}", "1", mode});
    INFO(r.out << r.err);
    CHECK(r.status == 1);
    const json j = parse_json(r.out);
    CHECK(j["runs"].size() == 1);
    CHECK(contains(j["ended"].text(), "the first run failed"));
    return j["runs"][0]["fault"].text();
  };
  const std::string no_input = fault("input", "20s");
  CHECK(contains(no_input, "exit status 5; it printed last: expected a list of files"));
  const std::string memory = fault("memory", "20s");
  CHECK(contains(memory, "SIGABRT; it printed last:"));
  CHECK(contains(memory, "bad_alloc"));
  CHECK(contains(fault("hangs", "500ms"), "recorded no batch in"));
  CHECK(contains(fault("nothing", "500ms"), "recorded nothing in"));
}

TEST_CASE("a daemon that a program leaves is ended") {
  const temp_dir dir;
  const std::string ids = dir.path() + "/ids";
  const result r = tune(dir, {"--set", "workers=1,2"}, {program, "{workers}", "1", "daemon", ids});
  INFO(r.out << r.err);
  CHECK(contains(parse_json(r.out)["runs"][0]["notes"][0].text(),
                 "1 process outlived the program, and were ended"));
  std::istringstream list(read_file(ids));
  pid_t id = 0;
  REQUIRE(list >> id);
  CHECK_FALSE(is_running(id));
}

TEST_CASE("a program that reads from the terminal is ended, although tune has a terminal") {
  const temp_dir dir;
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    unsetenv("LOTUS_LOG_FILE");
    const std::string command = "cd '" + dir.path() +
                                "' && exec '" LOTUS_TOOL_PROGRAM
                                "' tune --json --set workers=1,2 --for 20s -- '" +
                                program + "' {workers} 1 terminal >out 2>err";
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  REQUIRE(child > 0);
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  close(terminal);
  CHECK(WIFEXITED(status));
  const json j = parse_json(read_file(dir.path() + "/out"));
  CHECK(contains(j["runs"][0]["fault"].text(), "reads from a terminal"));
}

TEST_CASE("settings with which the program fails are left out") {
  const temp_dir dir;
  const result r = tune(dir, {"--set", "workers=1..3", "--for", "1s"},
                        {program, "{workers}", "2", "fails-with-3"});
  INFO(r.out);
  CHECK(r.status == 0);
  CHECK(parse_json(r.out)["best"]["workers"].integer() == 2);
}

TEST_CASE("a program that prints megabytes is not blocked and does not fill the memory") {
  const temp_dir dir;
  const result r = tune(dir, {"--set", "workers=2,3", "--for", "20s", "--runs", "1"},
                        {program, "{workers}", "2", "prints"});
  INFO(r.out);
  CHECK(r.status == 0);
  CHECK(parse_json(r.out)["runs"][0]["fault"].is_null());
}

TEST_CASE("tune --metric searches without markers, also variables") {
  const temp_dir dir;
  const result r = tune(dir,
                        {"--set", "workers=1..6", "--env", "FAST=1,2", "--metric", "([0-9.]+) it/s",
                         "--for", "500ms", "--runs", "9"},
                        {program, "{workers}", "1", "rate"});
  INFO(r.out);
  REQUIRE(r.status == 0);
  const json j = parse_json(r.out);
  CHECK(j["batches_per_s"].number() == 180);
  CHECK(j["best"]["workers"].integer() == 3);
  CHECK(j["best"]["FAST"].integer() == 2);
  CHECK(contains(j["command"].text(), "FAST=2 "));
  CHECK(j["limit"].is_null());
  const result other =
      tune(dir, {"--set", "workers=1,2", "--metric", "loss (.*)", "--for", "500ms"},
           {program, "{workers}", "1", "rate"});
  CHECK(other.status == 1);
  CHECK(contains(other.out, "matches --metric"));
}

TEST_CASE("a run with --metric ends when the printed rates agree") {
  const temp_dir dir;
  const result r = tune(
      dir, {"--set", "workers=2,3", "--metric", "([0-9.]+) it/s", "--for", "8s", "--runs", "1"},
      {program, "{workers}", "1", "rate"});
  INFO(r.out);
  const json run = parse_json(r.out)["runs"][0];
  CHECK(run["batches_per_s"].number() == 60);
  CHECK(run["seconds"].number() < 6);
}

TEST_CASE("the table of runs and the sentence below it show the same interval") {
  const temp_dir dir;
  // With --metric, the numbers are those that the program prints.
  const result r = run({"tune", "-q", "--dir", dir.path() + "/logs", "--set", "workers=2,3",
                        "--metric", "([0-9.]+) it/s", "--for", "2s", "--runs", "1", "--", program,
                        "{workers}", "1", "rate"});
  INFO(r.out);
  CHECK(r.status == 0);
  const std::string begin = "Certainty: ";
  const std::size_t at = r.out.find(begin);
  REQUIRE(at != std::string::npos);
  const std::size_t from = at + begin.size();
  const std::string interval = r.out.substr(from, r.out.find(" batches/s", from) - from);
  CHECK(contains(interval, " to "));
  CHECK(r.out.find(' ' + interval + ' ') < at);
}

TEST_CASE("tune --target runs the fewest threads that reach it, else exits with 4") {
  const temp_dir dir;
  const std::vector<std::string> command{program, "{workers}", "2"};
  const result r = tune(dir, {"--set", "workers=1..8", "--target", "95/s", "--for", "1s"}, command);
  INFO(r.out);
  CHECK(r.status == 0);
  CHECK(parse_json(r.out)["best"]["workers"].integer() == 2);
  CHECK(parse_json(r.out)["target_reached"].boolean());
  CHECK(tune(dir, {"--set", "workers=1,2", "--target", "900/s", "--for", "1s", "--runs", "1"},
             command)
            .status == 4);
}

TEST_CASE("Ctrl-C ends the trial, and prints what is known") {
  const temp_dir dir;
  const std::string command = "cd '" + dir.path() +
                              "' && exec '" LOTUS_TOOL_PROGRAM
                              "' tune --json --set workers=1..8 --for 1s -- '" +
                              program + "' {workers} 2 >out 2>err";
  const pid_t child = fork();
  if (child == 0) {
    unsetenv("LOTUS_LOG_FILE");
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  REQUIRE(child > 0);
  for (int i = 0; i < 1000; ++i) {
    const std::string err = dir.path() + "/err";
    if (std::filesystem::exists(err) && contains(read_file(err), "run 1 of at most 6, ")) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(child, SIGINT);
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 128 + SIGINT);
  const json j = parse_json(read_file(dir.path() + "/out"));
  CHECK(j["best"].is_object());
  CHECK(contains(j["ended"].text(), "interrupted by SIGINT"));
}

TEST_CASE("tune explains wrong options") {
  const temp_dir dir;
  const auto why = [&dir](const std::vector<std::string>& options) {
    const result r = tune(dir, options, {"true", "{workers}"});
    CHECK(r.status == 2);
    return r.err;
  };
  CHECK(contains(why({}), "nothing to choose from"));
  CHECK(contains(why({"--set", "workers"}), "expected NAME=VALUES"));
  CHECK(contains(why({"--set", "workers=4..1"}), "expected a range"));
  CHECK(contains(why({"--set", "workers=1,,2"}), "a value is empty"));
  CHECK(contains(why({"--set", "prefetch=1,2"}), "the command has no {prefetch}"));
  CHECK(contains(why({"--set", "workers=1,2", "--start", "worker=1"}), "did you mean 'workers'?"));
  CHECK(contains(why({"--set", "workers=1,2", "--start", "workers=3"}), "not one of the values"));
  CHECK(contains(why({"--set", "workers=1..4000", "--env", "A=1,2"}), "more than 4096"));
  CHECK(contains(why({"--set", "workers=1,2", "--metric", "it/s"}), "needs a group"));
  CHECK(contains(why({"--set", "workers=1,2", "--metric", "("}), "not a regular expression"));
}
