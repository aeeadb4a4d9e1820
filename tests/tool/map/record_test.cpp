// Tests lotus-tool map record, which samples the functions of a program while the program records.
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "map_test.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::map_test;
using namespace lotus::tool_test;

namespace {

int samples_files(const temp_dir& dir) {
  int count = 0;
  for (const std::string& name : dir.names()) {
    if (name.rfind(".lotus_samples_", 0) == 0) {
      ++count;
      CHECK_FALSE(contains(name, "_pid_"));
      CHECK_FALSE(contains(name, ".json"));
    }
  }
  return count;
}

}  // namespace

TEST_CASE("map record samples all processes of a run, and join uses their logs") {
  if (!sampling_allowed()) return;
  const temp_dir dir;
  const result recorded = execute(
      {LOTUS_TOOL_PROGRAM, "map", "record", "--rate", "2000", "--", LOTUS_MAP_PROBE, "fork", "300"},
      {{"LOTUS_LOG_FILE", dir.path() + "/lotustrace_log"}});
  INFO(recorded.err);
  REQUIRE(recorded.status == 0);
  CHECK(recorded.out.empty());
  CHECK(samples_files(dir) == 1);
  const result joined = run({"map", "join", dir.path(), "--json"});
  INFO(joined.err);
  REQUIRE(joined.status == 0);
  const auto json = parse_json(joined.out);
  const auto& beta = json["ops"]["Beta"];
  CHECK(beta["samples"].integer() > 20);
  CHECK(beta["cpu_ns"].integer() == beta["samples"].integer() * 500000);
  const std::string top = beta["functions"].members().front().name;
  CHECK(top == "(anonymous namespace)::hot_beta|lotus_map_probe");
  // The kernel's clock of samples may differ by some microseconds from the one of scopes, which
  // matters only for a sample at the very end of a scope.
  const std::string gamma = "(anonymous namespace)::hot_gamma|lotus_map_probe";
  CHECK((!beta["functions"].has(gamma) || beta["functions"][gamma].integer() == 1));
  const auto& inlined = beta["inlined"]["(anonymous namespace)::hot_beta|lotus_map_probe"];
  CHECK(contains(inlined.members().front().name, "arithmetic"));
  double shares = json["outside"]["share"].number();
  for (const auto& op : json["ops"].members()) shares += op.value["share"].number();
  CHECK(shares == Approx(1));
  CHECK(contains(run({"map", "join", dir.path()}).out, "hot_gamma|lotus_map_probe"));
  CHECK(contains(run({"map", "join", dir.path(), "--csv"}).out, "hot_gamma,lotus_map_probe,"));
#ifdef LOTUS_TOOL_REPORT
  const std::string page = dir.path() + "/report.html";
  REQUIRE(run({"report", dir.path(), "-o", page}).status == 0);
  CHECK(contains(read_file(page),
                 R"("functions":[["(anonymous namespace)::hot_beta|lotus_map_probe")"));
  CHECK(contains(read_file(page), R"({"name":"cpu-clock, seconds")"));
  // The values on the page must come from the samples of the run, not from a mapping.
  CHECK(contains(read_file(page), R"("of_run":true,"unit":"CPU seconds")"));
#endif
}

TEST_CASE("map record passes on the program's output and exit status") {
  if (!sampling_allowed()) return;
  const temp_dir dir;
  const result r = execute({LOTUS_TOOL_PROGRAM, "map", "record", "--samples",
                            dir.path() + "/samples", "--", LOTUS_MAP_PROBE, "exit", "42"});
  CHECK(r.status == 42);
  CHECK(r.out == "said on stdout\n");
  CHECK(contains(r.err, "has recorded nothing"));
  const result killed = execute({LOTUS_TOOL_PROGRAM, "map", "record", "-q", "--samples",
                                 dir.path() + "/samples", "--", "sh", "-c", "kill -9 $$"});
  CHECK(killed.status == 128 + 9);
  const result missing = execute({LOTUS_TOOL_PROGRAM, "map", "record", "--", "/no/such"});
  CHECK(missing.status == 1);
  CHECK(missing.err == "lotus-tool: /no/such: cannot be run: No such file or directory\n");
}

TEST_CASE("map record checks that samples can be written before it starts the program") {
  if (!sampling_allowed()) return;
  const temp_dir dir;
  const std::vector<std::pair<std::string, std::string>> places{
      {dir.path() + "/none/samples", "No such file or directory"},
      {dir.path(), "Is a directory"},
      {"/dev/full", "No space left on device"}};
  for (const auto& [path, why] : places) {
    const result r = execute({LOTUS_TOOL_PROGRAM, "map", "record", "--samples", path, "--",
                              LOTUS_MAP_PROBE, "exit", "42"});
    CHECK(r.status == 1);
    CHECK(r.out.empty());
    CHECK(r.err == "lotus-tool: " + path + ": cannot be written: " + why + "\n");
  }
}

TEST_CASE("a program continues when its samples can no longer be written") {
  if (!sampling_allowed()) return;
  const temp_dir dir;
  const std::string samples = dir.path() + "/samples";
  // A limit on the file size has the same effect as a full disk.
  const std::string record =
      "ulimit -f 1; exec \"$0\" map record --samples \"$1\" -- sh -c 'sleep 0.4; echo end; exit 7'";
  const result r = execute({"sh", "-c", record, LOTUS_TOOL_PROGRAM, samples});
  CHECK(r.status == 7);
  CHECK(r.out == "end\n");
  CHECK(r.err == "warning: " + samples +
                     ": cannot be written: File too large; the rest of the samples is "
                     "lost\n");
}

TEST_CASE("a deleted directory loses the samples but not the exit status") {
  if (!sampling_allowed()) return;
  const temp_dir dir;
  const std::string record =
      "mkdir here; cd here; exec \"$0\" map record -- sh -c 'rmdir ../here; echo end; exit 7'";
  const result r = execute({"sh", "-c", "cd \"$1\"; " + record, LOTUS_TOOL_PROGRAM, dir.path()});
  CHECK(r.status == 7);
  CHECK(r.out == "end\n");
  CHECK(contains(r.err, "cannot be written: No such file or directory; the rest of the samples"));
}

TEST_CASE("map record forwards signals to the program and continues to sample") {
  if (!sampling_allowed()) return;
  const temp_dir dir;
  for (const std::string name : {"USR1", "USR2", "QUIT", "XCPU", "TERM"}) {
    const std::string program = "trap 'echo got " + name + "; exit 5' " + name + "; kill -" + name +
                                " $PPID; for i in $(seq 100); do sleep 0.05; done";
    const result r = execute({LOTUS_TOOL_PROGRAM, "map", "record", "--samples",
                              dir.path() + "/samples", "--", "sh", "-c", program});
    INFO(name);
    CHECK(r.status == 5);
    CHECK(r.out == "got " + name + "\n");
    CHECK(contains(r.err, "The samples are in"));
  }
}

TEST_CASE("the program ignores the signals that nohup ignores") {
  if (!sampling_allowed()) return;
  const temp_dir dir;
  const std::string script =
      "trap '' HUP; exec \"$0\" map record -q --samples \"$1\" -- "
      "sh -c 'kill -HUP $PPID; sleep 0.1; kill -HUP $$; exit 6'";
  const result r = execute({"sh", "-c", script, LOTUS_TOOL_PROGRAM, dir.path() + "/samples"});
  CHECK(r.status == 6);
}

TEST_CASE("the command that map record suggests works") {
  if (!sampling_allowed()) return;
  const temp_dir dir;
  const std::string samples = dir.path() + "/elsewhere.bin";
  const std::string logs = dir.path() + "/run";
  const result r = execute({LOTUS_TOOL_PROGRAM, "map", "record", "--samples", samples, "--",
                            LOTUS_MAP_PROBE, "fork", "50"},
                           {{"LOTUS_LOG_FILE", logs + "/lotustrace_log"}});
  CHECK(r.status == 0);
  CHECK(contains(r.err, "next: lotus-tool map join " + logs + " --samples " + samples + "\n"));
  CHECK(run({"map", "join", logs, "--samples", samples}).status == 0);
}
