// lotus-tool map record and map join.
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "map/join.hpp"
#include "map_test.hpp"
#include "tool_test.hpp"

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

TEST_CASE("a sample goes to the innermost operation of its thread, to the nanosecond") {
  using namespace lotus::tool;
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_5",
           "SCrop,1100,100\nSFlip,1200,100\nSTransform,1100,300\nSBatchPreprocessed_0,1000,1000\n");
  located_samples samples;
  const std::uint32_t event = samples.event_id("cpu-clock");
  const std::uint32_t misses = samples.event_id("cache-misses");
  const std::uint32_t f = samples.function_id({"f|a", ""});
  const auto at = [&](std::int64_t time_ns, std::uint32_t tid, std::uint32_t what) {
    samples.samples.push_back({time_ns, 10, tid, f, what});
  };
  for (const std::int64_t time_ns : {1399, 1100, 1199, 1200, 1299, 1300, 1099, 1400}) {
    at(time_ns, 5, event);
  }
  at(1150, 6, event);  // a thread without a log
  at(1150, 5, misses);
  std::ostringstream err;
  diagnostics said(err, false);
  joined_run result;
  join(find_runs(dir.path(), "lotustrace_log", said).front(), samples, result, said);
  CHECK(result.ops["Crop"].total.samples == 2);
  CHECK(result.ops["Flip"].total.samples == 2);
  CHECK(result.ops["Transform"].total.samples == 2);
  CHECK(result.outside.total.samples == 3);
  CHECK(result.ops["Crop"].counters["cache-misses"] == 10);
  CHECK(result.ops["Crop"].counters["cpu-clock"] == 20);
  CHECK(result.ops["Crop"].functions.at("f|a").total.samples == 2);
  CHECK(result.total().samples == 9);
}

TEST_CASE("samples are those of CPU time, whichever event came first; shares go by time") {
  using namespace lotus::tool;
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_5", "SCrop,1000,100\nSLoad,2000,100\n");
  located_samples samples;
  const std::uint32_t faults = samples.event_id("page-faults:u");
  const std::uint32_t clock = samples.event_id("cpu-clock:u");
  const std::uint32_t f = samples.function_id({"f|a", ""});
  const std::uint32_t g = samples.function_id({"g|a", ""});
  samples.samples = {{1010, 1, 5, g, faults},      {1020, 1, 5, g, faults},
                     {1030, 1, 5, g, faults},      {1040, 750'000, 5, f, clock},
                     {2010, 125'000, 5, f, clock}, {2020, 125'000, 5, f, clock}};
  std::ostringstream err;
  diagnostics said(err, false);
  joined_run result;
  join(find_runs(dir.path(), "lotustrace_log", said).front(), samples, result, said);
  CHECK(result.event == "cpu-clock:u");
  const joined_op& crop = result.ops["Crop"];
  CHECK(crop.total.samples == 1);
  CHECK(cpu_ns(crop, result) == std::uint64_t{750'000});
  CHECK(crop.functions.count("g|a") == 0);
  CHECK(crop.counters.at("page-faults:u") == 3);
  std::ostringstream json;
  print_joined(result, print_as::json, json);
  const auto printed = parse_json(json.str());
  CHECK(printed["ops"]["Crop"]["share"].GetDouble() == Approx(0.75));
  CHECK(printed["ops"]["Load"]["share"].GetDouble() == Approx(0.25));
}

TEST_CASE("functions that were inlined are told below the one they were inlined into") {
  using namespace lotus::tool;
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_5", "SCrop,1000,100\n");
  located_samples samples;
  const std::uint32_t event = samples.event_id("cpu-clock");
  const std::uint32_t own = samples.function_id({"f|a", ""});
  const std::uint32_t inner = samples.function_id({"f|a", "round"});
  samples.samples = {{1010, 1, 5, own, event}, {1020, 1, 5, inner, event}};
  std::ostringstream err;
  diagnostics said(err, false);
  joined_run result;
  join(find_runs(dir.path(), "lotustrace_log", said).front(), samples, result, said);
  std::ostringstream json;
  print_joined(result, print_as::json, json);
  const auto printed = parse_json(json.str());
  CHECK(printed["ops"]["Crop"]["functions"]["f|a"].GetInt() == 2);
  CHECK(printed["ops"]["Crop"]["inlined"]["f|a"]["round"].GetInt() == 1);
  std::ostringstream table;
  print_joined(result, print_as::table, table);
  CHECK(contains(table.str(), "  inlined: round"));
}

TEST_CASE("a real run: all processes are sampled, joined with their logs") {
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
  CHECK(beta["samples"].GetUint64() > 20);
  CHECK(beta["cpu_ns"].GetUint64() == beta["samples"].GetUint64() * 500000);
  const std::string top = beta["functions"].MemberBegin()->name.GetString();
  CHECK(top == "(anonymous namespace)::hot_beta|lotus_map_probe");
  CHECK_FALSE(beta["functions"].HasMember("(anonymous namespace)::hot_gamma|lotus_map_probe"));
  const auto& inlined = beta["inlined"]["(anonymous namespace)::hot_beta|lotus_map_probe"];
  CHECK(contains(inlined.MemberBegin()->name.GetString(), "arithmetic"));
  double shares = json["outside"]["share"].GetDouble();
  for (const auto& op : json["ops"].GetObject()) shares += op.value["share"].GetDouble();
  CHECK(shares == Approx(1));
  CHECK(contains(run({"map", "join", dir.path()}).out, "hot_gamma|lotus_map_probe"));
  CHECK(contains(run({"map", "join", dir.path(), "--csv"}).out, "hot_gamma,lotus_map_probe,"));
#ifdef LOTUS_TOOL_REPORT
  const std::string page = dir.path() + "/report.html";
  REQUIRE(run({"report", dir.path(), "-o", page}).status == 0);
  CHECK(contains(read_file(page),
                 R"("functions":[["(anonymous namespace)::hot_beta|lotus_map_probe")"));
  CHECK(contains(read_file(page), R"({"name":"cpu-clock, seconds")"));
#endif
}

TEST_CASE("a program that was built anew after the run is told of") {
  if (!sampling_allowed()) return;
  const temp_dir dir;
  const std::string program = dir.path() + "/probe";
  std::filesystem::copy_file(LOTUS_MAP_PROBE, program);
  REQUIRE(execute({LOTUS_TOOL_PROGRAM, "map", "record", "-q", "--", program, "fork", "100"},
                  {{"LOTUS_LOG_FILE", dir.path() + "/run/lotustrace_log"}})
              .status == 0);
  const std::vector<std::string> join{"map", "join", "-q", dir.path() + "/run"};
  CHECK(run(join).err.empty());
  std::filesystem::copy_file(LOTUS_MAP_PROBE, dir.path() + "/rebuilt");
  std::filesystem::rename(dir.path() + "/rebuilt", program);
  CHECK(run(join).err ==
        "warning: " + program +
            ": has changed since it was sampled; if it was built anew, its functions are named "
            "wrongly: record again\n");
}

TEST_CASE("output and exit status of the program are passed through") {
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

TEST_CASE("samples that cannot be written are told of before the program is started") {
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

TEST_CASE("a program goes on when its samples cannot be written any more") {
  if (!sampling_allowed()) return;
  const temp_dir dir;
  const std::string samples = dir.path() + "/samples";
  // What does not fit into a file of so many blocks is as what does not fit onto the disk.
  const std::string record =
      "ulimit -f 1; exec \"$0\" map record --samples \"$1\" -- sh -c 'sleep 0.4; echo end; exit 7'";
  const result r = execute({"sh", "-c", record, LOTUS_TOOL_PROGRAM, samples});
  CHECK(r.status == 7);
  CHECK(r.out == "end\n");
  CHECK(r.err == "warning: " + samples +
                     ": cannot be written: File too large; the rest of the samples is "
                     "lost\n");
}

TEST_CASE("a folder that vanishes costs the samples, not the exit status") {
  if (!sampling_allowed()) return;
  const temp_dir dir;
  const std::string record =
      "mkdir here; cd here; exec \"$0\" map record -- sh -c 'rmdir ../here; echo end; exit 7'";
  const result r = execute({"sh", "-c", "cd \"$1\"; " + record, LOTUS_TOOL_PROGRAM, dir.path()});
  CHECK(r.status == 7);
  CHECK(r.out == "end\n");
  CHECK(contains(r.err, "cannot be written: No such file or directory; the rest of the samples"));
}

TEST_CASE("signals of users and job schedulers reach the program, and it is sampled on") {
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

TEST_CASE("what nohup ignores, the program ignores too") {
  if (!sampling_allowed()) return;
  const temp_dir dir;
  const result r = execute({"sh", "-c",
                            "trap '' HUP; exec \"$0\" map record -q --samples \"$1\" -- "
                            "sh -c 'kill -HUP $PPID; sleep 0.1; kill -HUP $$; exit 6'",
                            LOTUS_TOOL_PROGRAM, dir.path() + "/samples"});
  CHECK(r.status == 6);
}

TEST_CASE("the next command is one that works") {
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

TEST_CASE("perf's samples are joined by thread and time") {
  if (!sampling_allowed() || !installed("perf")) return;
  const temp_dir dir;
  const std::string data = dir.path() + "/perf.data";
  REQUIRE(execute({"perf", "record", "-q", "-k", "CLOCK_MONOTONIC", "-e", "cpu-clock:u", "-F",
                   "2000", "-o", data, "--", LOTUS_MAP_PROBE, "fork", "200"},
                  {{"LOTUS_LOG_FILE", dir.path() + "/run/lotustrace_log"}})
              .status == 0);
  const result joined = run({"map", "join", dir.path() + "/run", "--samples", data, "--json"});
  INFO(joined.err);
  REQUIRE(joined.status == 0);
  const auto json = parse_json(joined.out);
  const auto& functions = json["ops"]["Beta"]["functions"];
  CHECK(contains(functions.MemberBegin()->name.GetString(), "hot_beta|lotus_map_probe"));
  CHECK(json["ops"]["Beta"]["cpu_ns"].GetUint64() > 20'000'000);
  const std::string other = dir.path() + "/other.data";
  REQUIRE(execute({"perf", "record", "-q", "-e", "cpu-clock:u", "-o", other, "--", LOTUS_MAP_PROBE,
                   "fork", "50"})
              .status == 0);
  const result wrong = run({"map", "join", dir.path() + "/run", "--samples", other});
  CHECK(wrong.status == 1);
  CHECK(contains(wrong.err, "perf record -k CLOCK_MONOTONIC"));
}

TEST_CASE("what perf says of a damaged file is passed on; Ctrl-C meanwhile ends the tool") {
  const temp_dir dir;
  const std::string data = dir.file("perf.data", "PERFILE2 and no more");
  const std::string logs = dir.path() + "/run";
  dir.file("run/lotustrace_log_worker_pid_5", "SCrop,1100,100\n");
  const auto join_with = [&](const std::string& perf) {
    const std::string command = dir.file("bin/perf", "#!/bin/sh\n" + perf);
    std::filesystem::permissions(command, std::filesystem::perms::owner_all);
    return execute({LOTUS_TOOL_PROGRAM, "map", "join", logs, "--samples", data},
                   {{"PATH", dir.path() + "/bin:/usr/bin:/bin"}});
  };
  const result damaged = join_with(
      "echo ' 5/5  1.500000000:  10  cpu-clock:  7f f (/a)'\n"
      "echo '0x4e40 [0]: failed to process type: 0 [Invalid argument]' >&2\n"
      "echo '# done'\nexit 234\n");
  CHECK(damaged.status == 1);
  CHECK(damaged.err == "lotus-tool: " + data +
                           ": perf report cannot read it: 0x4e40 [0]: failed to process type: 0 "
                           "[Invalid argument]\n");
  CHECK(contains(join_with("exit 3\n").err, data + ": perf report cannot read it: status 3\n"));
  const result interrupted = join_with("kill -INT $PPID\nsleep 20\n");
  CHECK(interrupted.status == 128 + SIGINT);
  CHECK(interrupted.err.empty());
}

TEST_CASE("a run without samples is bad input") {
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_5", "SCrop,1100,100\n");
  const result r = run({"map", "join", dir.path()});
  CHECK(r.status == 1);
  CHECK(contains(r.err, "no samples beside the logs"));
}
