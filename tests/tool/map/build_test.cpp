// Tests lotus-tool map build, which finds out from reports of profilers which functions belong to
// which operation.
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

std::string vtune(const std::vector<std::pair<std::string, std::string>>& rows) {
  std::string text = "Function,CPU Time,Module\n";
  for (const auto& [function, seconds] : rows) {
    text.append(function).append(",").append(seconds).append(",a.so\n");
  }
  return text;
}

using functions_by_op = std::map<std::string, std::set<std::string>>;

functions_by_op sets(const json& object) {
  functions_by_op result;
  for (const auto& member : object.members()) {
    auto& set = result[member.name];
    for (const auto& value : member.value.array()) set.insert(value.text());
    CHECK(set.size() == member.value.size());
  }
  return result;
}

json build(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"map", "build"});
  arguments.emplace_back("--json");
  return parse_json(run_well(arguments).out);
}

}  // namespace

TEST_CASE("build makes a mapping with shared functions, hits and shares from reports") {
  const temp_dir dir;
  dir.file("Load/1.csv", vtune({{"decode", "3"}, {"copy", "1"}}));
  dir.file("Load/2.csv", vtune({{"decode", "4"}}));
  dir.file("Load/3.csv", vtune({{"decode", "2"}, {"copy", "1"}, {"rare", "1"}}));
  dir.file("Crop/1.csv", vtune({{"copy", "1"}}));
  dir.file("mapping_funcs.json", "{}");
  dir.file("Load/lotustrace_log_worker_pid_7", "SLoad,1,2\n");
  const auto all = build({dir.path()});
  CHECK(sets(all["op_to_func"]) ==
        functions_by_op{{"Load", {"decode|a.so", "copy|a.so", "rare|a.so"}},
                        {"Crop", {"copy|a.so"}}});
  CHECK(sets(all["common_funcs_to_op"]) == functions_by_op{{"copy|a.so", {"Crop", "Load"}}});
  const auto& decode = all["functions"]["Load"]["decode|a.so"];
  CHECK(decode["hits"].integer() == 3);
  CHECK(decode["runs"].integer() == 3);
  CHECK(decode["samples"].number() == Approx(9));
  CHECK(decode["share"].number() == Approx(9.0 / 12));
  CHECK(all["op_to_func"]["Load"][0].text() == "decode|a.so");

  CHECK(sets(build({dir.path() + "/Load/"})["op_to_func"]).count("Load") == 1);
}

TEST_CASE("-o writes the mapping, and build prints a table or CSV") {
  const temp_dir dir;
  dir.file("in/Load \"x\"/1.csv", vtune({{"\"f<a, b>\"", "3"}}));
  const std::string file = dir.path() + "/out.json";
  const result table = run({"map", "build", dir.path() + "/in", "-o", file});
  CHECK(table.status == 0);
  CHECK(contains(table.out, "f<a, b>|a.so"));
  CHECK(parse_json(read_file(file))["op_to_func"].has("Load \"x\""));
  const result csv = run({"map", "build", dir.path() + "/in", "--csv"});
  CHECK(
      csv.out ==
      "op,function,module,hits,runs,samples,share\n\"Load \"\"x\"\"\",\"f<a, b>\",a.so,1,1,3,1\n");
}

TEST_CASE("a report's name may contain a process id, and logs are not reports") {
  const temp_dir dir;
  dir.file("Load/1.csv", vtune({{"decode", "3"}}));
  dir.file("Load/vtune_pid_12.csv", vtune({{"copy", "1"}}));
  dir.file("Load/perf_pid_13", vtune({{"seek", "1"}}));
  dir.file("Load/my_log_worker_pid_7", "SLoad,1,2\n");
  dir.file("Load/my_log_main_pid_6", "SBatchWait_0,1,2\n");
  const result r = run({"map", "build", dir.path(), "--json"});
  CHECK(r.err.empty());
  REQUIRE(r.status == 0);
  const auto built = parse_json(r.out);
  CHECK(sets(built["op_to_func"])["Load"] ==
        std::set<std::string>{"decode|a.so", "copy|a.so", "seek|a.so"});
}

TEST_CASE("build does not overwrite a report") {
  const temp_dir dir;
  const std::string path =
      dir.file("Loader/1.txt", "# Overhead|Shared Object|Symbol\n50%|train|[.] crop\n");
  const std::string before = read_file(path);
  const result r = run({"map", "build", dir.path(), "-o", path});
  CHECK(r.status == 2);
  CHECK(r.err == "lotus-tool: " + path + ": is an input of this command; choose another output\n");
  CHECK(read_file(path) == before);
}

TEST_CASE("a directory without reports is bad input, and no directory is incorrect use") {
  const temp_dir dir;
  const result none = run({"map", "build", dir.path()});
  CHECK(none.status == 1);
  CHECK(none.err ==
        "lotus-tool: " + dir.path() +
            ": contains no report; expected a folder per operation, a report per run\n");
  CHECK(run({"map", "build", dir.path() + "/nowhere"}).status == 1);
  CHECK(run({"map", "build"}).status == 2);
  CHECK(run({"map"}).status == 2);
}

TEST_CASE("reports of 6 real operations yield the same mapping as the authors' notebooks") {
  namespace fs = std::filesystem;
  for (const std::string kind : {"vtune", "uprof"}) {
    const std::string dir = std::string(LOTUS_SHARED_HARDWARE) + '/' + kind;
    if (!fs::is_directory(dir)) {
      lotus_test::skip("no real reports here");
      continue;
    }
    const auto ours = build({dir});
    const auto reference = parse_json(read_file(dir + "/mapping_funcs.json"));
    CHECK(sets(ours["op_to_func"]) == sets(reference["op_to_func"]));
    CHECK(sets(ours["common_funcs_to_op"]) == sets(reference["common_funcs_to_op"]));
  }
}
