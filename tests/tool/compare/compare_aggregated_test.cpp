// Calls that were counted and not recorded, in a comparison and as a profile.
#include <cstddef>
#include <string>

#include "catch.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

/// A process' calls, as many as `count`, that took so many ns each.
std::string section(const std::string& name, int count, int ns) {
  const std::string n = std::to_string(count);
  const std::string total = std::to_string(count * ns);
  return "\nbegin,5.0,4294967296\n" + name + ",1," + n + ',' + total + ',' + total + ',' +
         std::to_string(ns) + ':' + n + "\nend,5.0,1\n";
}

/// Runs whose calls take about `ns`, less than 64, where bucket and duration are the same.
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

TEST_CASE("of one run a side counts and means are told, and nothing is made of them") {
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
  const result told = run({"compare", a, b, "--fail-above", "5%"});
  CHECK(told.status == 0);
  CHECK(contains(told.out, "  Token (aggregated) "));
}

TEST_CASE("of several runs a side the runs tell how sure a difference is") {
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

TEST_CASE("runs that only counted are compared; one that only one side has has no change") {
  const temp_dir dir;
  dir.file("a/.lotus_aggregated_lotustrace_log_1", section("SToken", 10, 20));
  dir.file("c/.lotus_aggregated_lotustrace_log_1",
           section("SToken", 10, 20) + "\nbegin,6.0,4294967296\nSNew,1,1,7,7,7:1\nend,6.0,1\n");
  const result told = run({"compare", dir.path() + "/a", dir.path() + "/c"});
  INFO(told.out << told.err);
  CHECK(told.status == 0);
  CHECK(contains(told.out, "Token took 20 ns before, 20 ns after"));
  const auto document =
      parse_json(run({"compare", dir.path() + "/a", dir.path() + "/c", "--json"}).out);
  CHECK(row_of(document, "SNew")["change"].is_null());
}

TEST_CASE("a profile has them, and their time once") {
  const temp_dir dir;
  dir.file("run/lotustrace_log_worker_pid_1", "SSentence,1000,10000\n");
  dir.file("run/.lotus_beside_lotustrace_log_pid_1", "aggregated,SToken,1000,4000,\n");
  dir.file("run/.lotus_aggregated_lotustrace_log_1", section("SToken", 100, 40));
  const result told = run({"stats", dir.path(), "--style", "profile"});
  INFO(told.out << told.err);
  CHECK(told.status == 0);
  CHECK(contains(told.out, "\n101 calls, 10.00 us on 1 thread\n"));
  const std::size_t at = told.out.find("  Token (aggregated)");
  REQUIRE(at != std::string::npos);
  const std::string row = told.out.substr(at, told.out.find('\n', at) - at);
  CHECK(contains(row, " 100 "));
  CHECK(contains(row, " 4.000 us"));
  CHECK(contains(row, " 40 ns"));
  CHECK(told.out.find("  Sentence") < at);  // 6 us are its own
  const result by_count = run({"stats", dir.path(), "--style", "profile", "--sort", "ncalls"});
  CHECK(by_count.out.find("Sentence") > by_count.out.find("Token"));
  const result first = run({"stats", dir.path(), "--style", "profile", "--row-limit", "1"});
  CHECK_FALSE(contains(first.out, "Token"));
  dir.file("only/.lotus_aggregated_lotustrace_log_1", section("SToken", 100, 40));
  const result only = run({"stats", dir.path() + "/only", "--style", "profile"});
  CHECK(only.status == 0);
  CHECK(contains(only.out, "\n100 calls, 4.000 us\n"));
}
