// Tests how `compare` and profiles show aggregated operations, whose calls were counted instead of
// recorded.
#include <cstddef>
#include <string>

#include "catch.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

/// Returns a section of an aggregates file with `count` calls of `ns` each.
std::string section(const std::string& name, int count, int ns) {
  const std::string n = std::to_string(count);
  const std::string total = std::to_string(count * ns);
  return "\nbegin,5.0,4294967296\n" + name + ",1," + n + ',' + total + ',' + total + ',' +
         std::to_string(ns) + ':' + n + "\nend,5.0,1\n";
}

/// Writes `runs` runs into the folder `side`; each call takes about `ns`. `ns` must be below 64:
/// only up to there, each bucket of the aggregates contains exactly one duration.
void write_runs(const temp_dir& dir, const std::string& side, int runs, int ns) {
  for (int i = 0; i < runs; ++i) {
    const std::string to = side + '/' + std::to_string(i) + '/';
    dir.file(to + "lotustrace_log_worker_pid_1", "SRead,1000,500\n");
    dir.file(to + ".lotus_info_1_1", "lotus 1\n");
    dir.file(to + ".lotus_aggregated_lotustrace_log_1", section("SToken", 1000, ns + i % 2));
  }
}

json row_of(const json& document, const std::string& name) {
  for (std::size_t i = 0; i < document["rows"].size(); ++i) {
    if (document["rows"][i]["name"].text() == name) return document["rows"][i];
  }
  FAIL("no row " << name);
  return document;
}

}  // namespace

TEST_CASE("compare reports counts and means if there is one run on each side") {
  const temp_dir dir;
  write_runs(dir, "a", 1, 20);
  write_runs(dir, "b", 1, 40);
  const std::string a = dir.path() + "/a";
  const std::string b = dir.path() + "/b";
  const auto document = parse_json(run({"compare", a, b, "--json", "--fail-above", "5%"}).out);
  const json& row = row_of(document, "SToken");
  CHECK(row["kind"].text() == "aggregated");
  CHECK(row["before"]["count"].integer() == 1000);
  CHECK(row["before"]["mean_ns"].number() == 20);
  CHECK(row["after"]["mean_ns"].number() == 40);
  CHECK(row["change"].number() == 1);
  CHECK(row["low"].is_null());
  CHECK(document["slower"].size() == 0);
  const result reported = run({"compare", a, b, "--fail-above", "5%"});
  CHECK(reported.status == 0);
  CHECK(contains(reported.out, "  Token (aggregated) "));
}

TEST_CASE("compare reports an interval if there are several runs on each side") {
  const temp_dir dir;
  write_runs(dir, "a", 6, 20);
  write_runs(dir, "b", 6, 40);
  const std::string a = dir.path() + "/a";
  const std::string b = dir.path() + "/b";
  const auto document = parse_json(run({"compare", a, b, "--json"}).out);
  const json& row = row_of(document, "SToken");
  CHECK(row["before"]["count"].integer() == 6000);
  CHECK(row["low"].number() > 0.8);
  CHECK(row["high"].number() < 1.2);
  CHECK(row["p"].number() < 0.01);
  CHECK(run({"compare", a, b, "--fail-above", "5%"}).status == 3);
  CHECK(run({"compare", a, a, "--fail-above", "5%"}).status == 0);
  CHECK(run({"compare", b, a, "--fail-above", "5%"}).status == 0);
}

TEST_CASE("runs that only count calls can be compared, and new operations have no change") {
  const temp_dir dir;
  dir.file("a/.lotus_aggregated_lotustrace_log_1", section("SToken", 10, 20));
  dir.file("c/.lotus_aggregated_lotustrace_log_1",
           section("SToken", 10, 20) + "\nbegin,6.0,4294967296\nSNew,1,1,7,7,7:1\nend,6.0,1\n");
  const result reported = run({"compare", dir.path() + "/a", dir.path() + "/c"});
  INFO(reported.out << reported.err);
  CHECK(reported.status == 0);
  CHECK(contains(reported.out, "Token took 20 ns before, 20 ns after"));
  const auto document =
      parse_json(run({"compare", dir.path() + "/a", dir.path() + "/c", "--json"}).out);
  CHECK(row_of(document, "SNew")["change"].is_null());
}

TEST_CASE("a profile lists counted calls, and includes their time once") {
  const temp_dir dir;
  dir.file("run/lotustrace_log_worker_pid_1", "SSentence,1000,10000\n");
  dir.file("run/.lotus_beside_lotustrace_log_pid_1", "aggregated,SToken,1000,4000,\n");
  dir.file("run/.lotus_aggregated_lotustrace_log_1", section("SToken", 100, 40));
  const result reported = run({"stats", dir.path(), "--style", "profile"});
  INFO(reported.out << reported.err);
  CHECK(reported.status == 0);
  CHECK(contains(reported.out, "\n101 calls, 10.00 us in total, on 1 thread\n"));
  const std::size_t at = reported.out.find("  Token (aggregated)");
  REQUIRE(at != std::string::npos);
  const std::string row = reported.out.substr(at, reported.out.find('\n', at) - at);
  CHECK(contains(row, " 100 "));
  CHECK(contains(row, " 4.000 us"));
  CHECK(contains(row, " 40 ns"));
  // The table is sorted by self time: Sentence has 6 us, Token 4 us.
  CHECK(reported.out.find("  Sentence") < at);
  const result by_count = run({"stats", dir.path(), "--style", "profile", "--sort", "ncalls"});
  CHECK(by_count.out.find("Sentence") > by_count.out.find("Token"));
  const result first = run({"stats", dir.path(), "--style", "profile", "--row-limit", "1"});
  CHECK_FALSE(contains(first.out, "Token"));
  dir.file("only/.lotus_aggregated_lotustrace_log_1", section("SToken", 100, 40));
  const result only = run({"stats", dir.path() + "/only", "--style", "profile"});
  CHECK(only.status == 0);
  CHECK(contains(only.out, "\n100 calls, 4.000 us in total\n"));
}
