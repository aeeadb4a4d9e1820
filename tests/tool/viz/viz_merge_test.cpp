// Tests merging a run into a PyTorch profiler trace.
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <iterator>
#include <set>
#include <string>

#include "accelerator/trace/torch_trace.hpp"
#include "catch.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;
using lotus::tool::json_kind;
using lotus::tool::merged_name;
using lotus::tool::scan_json;

namespace {

const char* const old_form =
    R"({"schemaVersion": 1, "distributedInfo": {"rank": 3, "pid": 77}, "traceEvents": [
  {"ph": "X", "cat": "cpu_op", "name": "aten::zeros", "pid": 100, "tid": 101, "ts": 1700000000003000, "dur": 5}
], "traceName": "t.json"})";

void add_run(const temp_dir& dir) {
  dir.file("lotustrace_log_main_pid_100", "SBatchConsumed_0,1700000000002950123,1000\n");
  dir.file("lotustrace_log_worker_pid_101",
           "SLoader,1700000000000000000,3000\n"
           "SBatchPreprocessed_0,1700000000000000000,2800000\n");
}

json event_named(const json& document, const std::string& name) {
  for (const auto& event : document["traceEvents"].array()) {
    if (event["name"].text() == name) return event;
  }
  FAIL("no event " << name);
  return document;
}

void write_gzip(const std::string& path, const std::string& text) {
  gzFile out = gzopen(path.c_str(), "wb");
  gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
  gzclose(out);
}

}  // namespace

TEST_CASE("a trace found in the logs' directory is merged, and the result is written there too") {
  const temp_dir dir;
  add_run(dir);
  dir.file("t.pt.trace.json", old_form);
  const result r = run_well({"viz", dir.path()});
  const std::string text = read_file(dir.path() + "/t.pt.trace_fine.json");
  const auto document = parse_json(text);
  // This text must be copied byte for byte.
  CHECK(contains(text, R"("distributedInfo": {"rank": 3, "pid": 77})"));
  CHECK(document["traceName"].text() == "t.json");
  CHECK(event_named(document, "aten::zeros")["ts"].integer() == 1700000000003000);
  CHECK(event_named(document, "Loader")["ts"].number() == 1700000000000000.0);
  CHECK(contains(text, "1700000000002950.123"));
  CHECK(event_named(document, "step")["pid"].integer() != 100);
  std::set<std::int64_t> tids;
  for (const auto* name : {"aten::zeros", "step", "Loader"}) {
    tids.insert(event_named(document, name)["tid"].integer());
  }
  CHECK(tids.size() == 3);  // otherwise, slices of the profiler and of the run would not nest

  REQUIRE(run({"viz", dir.path(), "--coarse"}).status == 0);
  CHECK(std::filesystem::exists(dir.path() + "/t.pt.trace_coarse.json"));
}

TEST_CASE("files written by this tool or the original are never used as input") {
  const temp_dir dir;
  add_run(dir);
  dir.file("t.json", old_form);
  for (const auto* form : {"--quiet", "--compat"}) {
    REQUIRE(run({"viz", dir.path(), form}).status == 0);
    CHECK(scan_json(dir.path() + "/t_fine.json").kind == json_kind::ours);
    const std::string first = read_file(dir.path() + "/t_fine.json");
    const result again = run({"viz", dir.path(), form});
    CHECK(again.status == 0);
    CHECK_FALSE(contains(again.err, "warning"));
    CHECK(read_file(dir.path() + "/t_fine.json") == first);
  }
  REQUIRE(run({"viz", dir.path(), "-o", dir.path() + "/mine.json"}).status == 0);
  CHECK(scan_json(dir.path() + "/mine.json").kind == json_kind::ours);
  CHECK(run({"viz", dir.path(), "-o", "-", "--torch-trace", dir.path() + "/t_fine.json"}).status ==
        1);
}

TEST_CASE("the --compat output of a run without batches is not used as input either") {
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_5", "SLoader,1700000000000000000,1000\n");
  REQUIRE(run({"viz", dir.path(), "--compat", "-o", dir.path() + "/mine.json"}).status == 0);
  CHECK(scan_json(dir.path() + "/mine.json").kind == json_kind::ours);
  CHECK(run({"viz", dir.path(), "-o", "-"}).err.empty());
}

TEST_CASE("a trace or run that is not merged is reported") {
  const temp_dir dir;
  dir.file("a/lotustrace_log_worker_pid_5", "SLoader,1700000000000000000,1000\n");
  dir.file("b/lotustrace_log_worker_pid_5", "SLoader,1700000000000000000,1000\n");
  dir.file("a/t.json", old_form);
  const result both = run({"viz", dir.path()});
  CHECK(both.status == 0);
  CHECK(contains(both.err, "warning: " + dir.path() + "/b: skipped"));
  const result other = run({"viz", dir.path() + "/a", "-o", "-", "--format", "perfetto"});
  CHECK(other.status == 0);
  CHECK(contains(other.err, "warning: " + dir.path() + "/a/t.json: not merged"));
}

TEST_CASE("in the new form, times are relative to the trace's base time") {
  const temp_dir dir;
  add_run(dir);
  const std::string path = dir.file("new/t.json",
                                    R"({"baseTimeNanoseconds": 1699999999000000000,
    "traceEvents": [{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1000000.5, "dur": 1}]})");
  const auto document = parse_json(run({"viz", dir.path(), "-o", "-", "--torch-trace", path}).out);
  CHECK(document["baseTimeNanoseconds"].integer() == 1699999999000000000);
  CHECK(event_named(document, "Loader")["ts"].number() == 1000000.0);
  CHECK(event_named(document, "step")["ts"].number() == 1002950.123);
  const auto compat =
      parse_json(run({"viz", dir.path(), "-o", "-", "--compat", "--torch-trace", path}).out);
  CHECK(event_named(compat, "SLoader")["ts"].integer() == 1000000);
}

TEST_CASE("gzip, arrays and empty traces are merged") {
  const temp_dir dir;
  add_run(dir);
  const std::string gz = dir.path() + "/new.json.gz";
  write_gzip(gz, old_form);
  CHECK(parse_json(run({"viz", dir.path(), "-o", "-", "--torch-trace", gz}).out)["traceName"]
            .is_text());
  for (const auto* text :
       {R"([{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1}])", "[]", " [ ] "}) {
    const std::string path = dir.file("array/t.json", text);
    const result r = run_well({"viz", dir.path(), "-o", "-", "--torch-trace", path});
    CHECK(parse_json(r.out).is_array());
    CHECK(contains(r.out, "Loader"));
  }
  const std::string empty = dir.file("array/e.json", R"({"traceEvents":[ ]})");
  CHECK(event_named(parse_json(run({"viz", dir.path(), "-o", "-", "--torch-trace", empty}).out),
                    "Loader")
            .is_object());
}

TEST_CASE("the key traceEvents counts at the top level only") {
  const temp_dir dir;
  const auto scan = [&dir](const char* text) { return scan_json(dir.file("a.json", text)).kind; };
  CHECK(scan(R"({"a":{"traceEvents":[1]}})") == json_kind::not_trace);
  CHECK(scan(R"({"traceEvents":5})") == json_kind::not_trace);
  CHECK(scan(R"({"traceEvents":null,"b":[1]})") == json_kind::not_trace);
  CHECK(scan(R"({"a":"traceEvents","b":[{}]})") == json_kind::not_trace);
  CHECK(scan(R"({"runs":[]})") == json_kind::not_trace);
  CHECK(scan(R"({"traceEvents":[{"args":{"name":"SBatchWait_1"}}]})") == json_kind::trace);
  CHECK(scan(R"({"traceEvents":[{"name":"SBatchWait_1"}]})") == json_kind::ours);
  CHECK(scan(R"({"traceEvents":[)") == json_kind::broken);
  CHECK(scan("") == json_kind::broken);
  CHECK(scan("{}") == json_kind::not_trace);
  CHECK(scan(R"({"traceEvents":[{"a":NaN,"b":-Infinity,"c":99999999999999999999}]})") ==
        json_kind::trace);
  CHECK(scan((std::string(200000, '[')).c_str()) == json_kind::broken);
}

TEST_CASE("a found file that is not a trace is ignored, and a given one is an error") {
  const temp_dir dir;
  add_run(dir);
  const std::string path = dir.file("config.json", R"({"workers": 4})");
  const result r = run({"viz", dir.path(), "-o", "-"});
  CHECK(r.status == 0);
  CHECK(contains(r.err, "config.json: ignored: not a profiler trace"));
  CHECK(run({"viz", dir.path(), "-o", "-", "--torch-trace", path}).status == 1);
  dir.file("config.json", "{");
  CHECK(run({"viz", dir.path(), "-o", "-"}).status == 0);
  CHECK(run({"viz", dir.path(), "-o", "-", "--strict"}).status == 1);
  CHECK(run({"viz", dir.path(), "-o", "-", "--torch-trace", path}).status == 1);
  CHECK(run({"viz", dir.path(), "-o", "-", "--torch-trace", dir.path() + "/none"}).status == 1);
}

TEST_CASE("a damaged gzip file is broken, and is closed") {
  const temp_dir dir;
  std::string text(4000, ' ');
  const std::string path = dir.path() + "/t.json.gz";
  write_gzip(path, "{\"traceEvents\":[" + text + "]}");
  std::string bytes = read_file(path);
  // This changes the length that gzip stores at the end of the file.
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  dir.file("t.json.gz", bytes);
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator());
  };
  const auto before = open_files();
  const auto scan = scan_json(path);
  CHECK(scan.kind == json_kind::broken);
  CHECK(contains(scan.what, path + ": cannot be read to its end"));
  CHECK(open_files() == before);
}

TEST_CASE("one of several traces is merged, and the others are reported") {
  const temp_dir dir;
  add_run(dir);
  dir.file("a.json", old_form);
  dir.file("b.json", old_form);
  const result r = run({"viz", dir.path()});
  CHECK(r.status == 0);
  CHECK(contains(r.err, "a.json: not merged, because"));
  CHECK(std::filesystem::exists(dir.path() + "/b_fine.json"));
}

TEST_CASE("every run with a trace gets its own output, as with the original") {
  const temp_dir dir;
  for (const std::string sub : {"b1/", "b2/"}) {
    dir.file(sub + "lotustrace_log_main_pid_1", "SBatchWait_0,1,2\n");
    dir.file(sub + "t.json", old_form);
  }
  CHECK(run({"viz", dir.path(), "-o", dir.path() + "/all.json"}).status == 2);
  CHECK(run({"viz", dir.path()}).status == 0);
  CHECK(std::filesystem::exists(dir.path() + "/b1/t_fine.json"));
  CHECK(std::filesystem::exists(dir.path() + "/b2/t_fine.json"));
}

TEST_CASE("output names are those of the original") {
  CHECK(merged_name("/x/t.pt.trace.json", false) == "/x/t.pt.trace_fine.json");
  CHECK(merged_name("/x/t.pt.trace.json.gz", true) == "/x/t.pt.trace_coarse.json");
  CHECK(merged_name("a.json.old.json", false) == "a_fine.json");
}

TEST_CASE("a profiled run is merged as by the original") {
  if (shared_traces().empty()) {
    lotus_test::skip("the larger set of traces is absent");
    return;
  }
  const std::string expected = shared_traces() + "/g_profiled_w2/expected/";
  for (const std::string kind : {"fine", "coarse"}) {
    const temp_dir dir;
    std::vector<std::string> arguments{"viz", shared_traces() + "/g_profiled_w2", "--compat", "-o",
                                       dir.path() + "/o.json"};
    if (kind == "coarse") arguments.emplace_back("--coarse");
    REQUIRE(run(arguments).status == 0);
    const std::string ours = read_file(dir.path() + "/o.json");
    const std::string theirs =
        read_file(expected + "host_23044.1795251014526.pt.trace_" + kind + ".json");
    CHECK(sorted_events(ours) == sorted_events(theirs));
    const auto a = parse_json(ours);
    const auto b = parse_json(theirs);
    CHECK(a.canonical("traceEvents") == b.canonical("traceEvents"));
  }
}
