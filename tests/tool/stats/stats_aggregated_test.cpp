// Tests operations that were counted instead of recorded: stats must show them with the recorded
// ones, and must count nothing twice.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "stats_test.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

const std::string one_ns_a_tick = "4294967296";

std::string section(const std::string& id, const std::string& lines, std::size_t count) {
  return "\nbegin," + id + ',' + one_ns_a_tick + '\n' + lines + "end," + id + ',' +
         std::to_string(count) + '\n';
}

/// Runs `body` in a child process that records to `dir`.
template <class Body>
void record_in_child(const temp_dir& dir, Body&& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(250);
    lotus::options o;
    o.log_file = dir.path() + "/lotustrace_log";
    if (!lotus::start(o)) _exit(1);
    body();
    _exit(0);
  }
  waitpid(child, nullptr, 0);
}

double exact_quantile(const std::vector<double>& sorted, double share) {
  const double position = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const double rest = position - static_cast<double>(below);
  return sorted[below] + rest * (sorted[std::min(below + 1, sorted.size() - 1)] - sorted[below]);
}

}  // namespace

TEST_CASE("counts of several processes and threads are added up for each operation") {
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_1", "SRead,1000,500\n");
  dir.file(".lotus_aggregated_lotustrace_log_1",
           section("5.0", "STo%2Cken,1,3,60,50,10:1 25:2\nSOther,1,1,7,7,7:1\n", 2) +
               section("6.0", "STo%2Cken,0,1,100,100,100:1\n", 1));
  dir.file(".lotus_aggregated_lotustrace_log_2", section("5.0", "STo%2Cken,2,2,20,20,10:2\n", 1));
  dir.file(".lotus_aggregated_another_2", section("5.0", "STo%2Cken,2,2,20,20,10:2\n", 1));
  const auto document = stats(dir.path());
  const auto& run = document["runs"][0];
  CHECK(run["ops"]["SRead"]["count"].integer() == 1);
  const auto& token = run["aggregated"]["STo,ken"];
  CHECK(token["count"].integer() == 6);
  CHECK(token["total_ns"].integer() == 180);
  CHECK(token["self_ns"].integer() == 170);
  CHECK(token["min_ns"].integer() == 10);
  CHECK(token["p50_ns"].number() == 17.5);
  CHECK(token["max_ns"].integer() == 100);
  CHECK(run["aggregated"]["SOther"]["count"].integer() == 1);
  CHECK(contains(lotus::tool_test::run({"stats", dir.path()}).out, "  aggregated "));
  CHECK(contains(lotus::tool_test::run({"stats", dir.path(), "--csv"}).out, ",aggregated,"));
}

TEST_CASE("a section of counts is included once, and an incomplete one not at all") {
  const temp_dir dir;
  dir.file(".lotus_aggregated_lotustrace_log_1", section("5.0", "SToken,1,1,10,10,10:1\n", 1) +
                                                     section("5.0", "SToken,1,2,20,20,10:2\n", 1) +
                                                     section("5.1", "SToken,1,1,10,10,10:1\n", 1) +
                                                     "\nbegin,9.0,1\nSToken,1,7,7");
  CHECK(stats(dir.path())["runs"][0]["aggregated"]["SToken"]["count"].integer() == 3);
  for (const char* line :
       {"SToken,1,2,20,20,10:1\n", "SToken,1,1,10,11,10:1\n", "SToken,1,1,10,10,99999:1\n",
        "SToken,1,1,10\n", "SToken,,1,1,1,1:1\n", "SToken,1,2,20,20,11:1 10:1\n"}) {
    const temp_dir damaged;
    damaged.file(".lotus_aggregated_lotustrace_log_1",
                 section("5.0", std::string(line) + "SGood,1,1,10,10,10:1\n", 1));
    const result r = run({"stats", damaged.path(), "--strict"});
    CAPTURE(line, r.err);
    CHECK(r.status == 1);
    CHECK(contains(r.err, "_1:3: not an aggregate"));
  }
}

TEST_CASE("the self time of an operation excludes counted calls and operations inside it") {
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_1", "SChild,1200,300\nSParent,1000,1000\nSParent,3000,100\n");
  dir.file(".lotus_beside_lotustrace_log_pid_1",
           "aggregated,SToken,1250,100,\naggregated,SToken,1500,400,\n");
  const auto document = stats(dir.path());
  const auto& ops = document["runs"][0]["ops"];
  CHECK(ops["SChild"]["self_ns"].integer() == 200);
  CHECK(ops["SParent"]["self_ns"].integer() == 1000 - 300 - 400 + 100);
  CHECK(ops["SParent"]["total_ns"].integer() == 1100);
}

TEST_CASE("every quantile of recorded calls is within 1 %") {
  const temp_dir dir;
  std::mt19937_64 random{7};
  std::lognormal_distribution<double> durations{9, 2};
  std::vector<std::uint64_t> ticks;
  for (int i = 0; i < 100'000; ++i) {
    ticks.push_back(static_cast<std::uint64_t>(durations(random)));
  }
  record_in_child(dir, [&] {
    const auto tag = lotus::detail::operation_tag("Given");
    for (const std::uint64_t t : ticks) {
      lotus::detail::aggregate(5, 5 + t, tag, lotus::detail::begin_aggregated());
    }
    lotus::stop();
  });
  std::string written;
  for (const std::string& name : dir.names()) {
    if (contains(name, "aggregated")) written = read_file(dir.path() + '/' + name);
  }
  const std::size_t rate_at = written.find(',', written.find(',') + 1) + 1;
  const double rate = std::stod(written.substr(rate_at)) / 4294967296.0;
  std::vector<double> ns;
  for (const std::uint64_t t : ticks) ns.push_back(static_cast<double>(t) * rate);
  std::sort(ns.begin(), ns.end());
  const auto document = stats(dir.path());
  const auto& given = document["runs"][0]["aggregated"]["SGiven"];
  CHECK(given["count"].integer() == 100'000);
  const auto near = [](double reported, double is) { return std::abs(reported - is) <= is / 100; };
  CHECK(near(given["p50_ns"].number(), exact_quantile(ns, 0.5)));
  CHECK(near(given["p90_ns"].number(), exact_quantile(ns, 0.9)));
  CHECK(near(given["p99_ns"].number(), exact_quantile(ns, 0.99)));
  CHECK(near(given["max_ns"].number(), ns.back()));
  CHECK(near(given["std_ns"].number(), [&] {
    double mean = 0;
    for (const double n : ns) mean += n / static_cast<double>(ns.size());
    double squares = 0;
    for (const double n : ns) squares += (n - mean) * (n - mean);
    return std::sqrt(squares / static_cast<double>(ns.size()));
  }()));
}

TEST_CASE("calls of a killed process are included before and after recovery") {
  const temp_dir dir;
  record_in_child(dir, [] {
    for (int i = 0; i < 1000; ++i) LOTUS_SCOPE_AGGREGATED("Token");
    LOTUS_LOADER("val");
    for (int i = 0; i < 7; ++i) LOTUS_SCOPE_AGGREGATED("Token");
    raise(SIGKILL);
  });
  for (int again = 0; again < 2; ++again) {
    const auto document = stats(dir.path());
    CHECK(document["runs"][0]["aggregated"]["SToken"]["count"].integer() == 1000);
    CHECK(document["runs"][1]["aggregated"]["SToken"]["count"].integer() == 7);
    CHECK(run({"recover", dir.path()}).status == 0);
  }
}

TEST_CASE("diagnose shows counted calls too, and viz says that it cannot cut them to a window") {
  const temp_dir dir;
  std::filesystem::copy(traces() + "/c_ooo_w4/b8_gpu4", dir.path(),
                        std::filesystem::copy_options::recursive);
  const auto before = parse_json(run({"diagnose", dir.path(), "--json"}).out);
  dir.file(".lotus_aggregated_lotustrace_log_1", section("5.0", "SToken,1,2,20,20,10:2\n", 1));
  const auto judged = parse_json(run({"diagnose", dir.path(), "--json"}).out);
  CHECK(judged["sentence"].canonical() == before["sentence"].canonical());
  CHECK(judged["critical_path"].canonical() == before["critical_path"].canonical());
  CHECK(judged["aggregated"][0]["name"].text() == "SToken");
  CHECK(judged["aggregated"][0]["count"].integer() == 2);
  CHECK(contains(run({"diagnose", dir.path(), "--details"}).out, "aggregated, within the above"));
  const result drawn = run({"viz", dir.path(), "--last", "1ms", "-o", dir.path() + "/t.json"});
  CHECK(drawn.status == 0);
  CHECK(contains(drawn.err, "no window can be cut out"));
}

TEST_CASE("no command crashes for a run that contains only counted calls") {
  const temp_dir dir;
  dir.file(".lotus_aggregated_lotustrace_log_1", section("5.0", "SToken,1,2,20,20,10:2\n", 1));
  CHECK(stats(dir.path())["runs"][0]["aggregated"]["SToken"]["count"].integer() == 2);
  for (const char* command : {"viz", "export", "compare", "whatif", "diagnose"}) {
    std::vector<std::string> arguments{command, dir.path()};
    if (command == std::string("compare")) arguments.push_back(dir.path());
    if (command == std::string("viz")) arguments.insert(arguments.end(), {"-o", dir.path() + "/t"});
    if (command == std::string("export")) {
      arguments.insert(arguments.end(), {"--format", "csv", "-o", dir.path() + "/t"});
    }
    CAPTURE(command);
    CHECK(run(arguments).status != 139);
  }
}

TEST_CASE("an operation without a name is counted and shown like any other") {
  const temp_dir dir;
  record_in_child(dir, [] {
    for (int i = 0; i < 3; ++i) {
      LOTUS_SCOPE("Around");
      LOTUS_SCOPE_AGGREGATED("");
    }
    lotus::stop();
  });
  const result reported = run({"stats", "--json", dir.path()});
  INFO(reported.err);
  REQUIRE(reported.status == 0);
  CHECK(reported.err.empty());
  CHECK(parse_json(reported.out)["runs"][0]["aggregated"]["S"]["count"].integer() == 3);
  CHECK(run({"stats", "--strict", dir.path()}).status == 0);
}
