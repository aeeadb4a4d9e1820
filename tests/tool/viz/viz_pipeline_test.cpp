// What viz draws of stages, items, loaders, counters, asynchronous operations, time off the CPU.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "tool/tool_test.hpp"
#include "viz_test.hpp"

using namespace lotus::tool_test;

namespace {

/// Threads 11 and 12 read and decode items, 13 collates two of them to a batch, 10 consumes. Item i
/// is read from i ms for 2 ms, decoded for 3 ms from 2 ms later; decoding item 2 takes 20 ms.
/// Batch 0 is items 0 and 1, batch 1 items 2 and 3.
void add_stages(const temp_dir& dir, const std::string& folder = "") {
  std::string reads, decodes, beside_reads, beside_decodes;
  const auto span = [](const std::string& name, std::int64_t at_us, std::int64_t for_us) {
    return "S" + name + ',' + std::to_string(at_us * 1000) + ',' + std::to_string(for_us * 1000);
  };
  std::int64_t at = 100'000;
  std::int64_t decoder_at = 100'000;
  for (int item = 0; item < 4; ++item) {
    const std::string number = ',' + std::to_string(item) + '\n';
    const std::string read = span("Read", at, 2000);
    reads += read + '\n';
    beside_reads += "stage," + read + number;
    at += 2000;
    decoder_at = std::max(decoder_at, at) + 100;
    const std::int64_t takes = item == 2 ? 20'000 : 3000;
    const std::string decode = span("Decode", decoder_at, takes);
    decodes += span("Idct", decoder_at + 500, 1000) + '\n' + decode + '\n';
    beside_decodes += "stage," + decode + number;
    decoder_at += takes;
  }
  std::string collates, beside_collates;
  for (int batch = 0; batch < 2; ++batch) {
    const std::int64_t start = batch == 0 ? 115'000 : 140'000;
    const std::string collate = span("Collate", start, 4000);
    collates += collate + '\n';
    beside_collates += "takes,," + std::to_string((start + 1) * 1000) + ',' +
                       std::to_string(batch) + ',' + std::to_string(2 * batch) + '\n';
    beside_collates += "takes,," + std::to_string((start + 2) * 1000) + ',' +
                       std::to_string(batch) + ',' + std::to_string(2 * batch + 1) + '\n';
    beside_collates += "stage," + collate + ',' + std::to_string(batch) + '\n';
  }
  dir.file(folder + "lotustrace_log_worker_pid_11", reads);
  dir.file(folder + ".lotus_beside_lotustrace_log_pid_11", beside_reads);
  dir.file(folder + "lotustrace_log_worker_pid_12", decodes);
  dir.file(folder + ".lotus_beside_lotustrace_log_pid_12", beside_decodes);
  dir.file(folder + "lotustrace_log_worker_pid_13", collates);
  dir.file(folder + ".lotus_beside_lotustrace_log_pid_13", beside_collates);
  dir.file(folder + "lotustrace_log_main_pid_10",
           "SBatchWait_0,100000000,19500000\nSBatchConsumed_0,119500000,1000\n"
           "SBatchWait_1,125000000,20000000\nSBatchConsumed_1,145000000,1000\n");
}

std::multiset<std::string> slices(const json& document) {
  std::multiset<std::string> names;
  for (const json& event : document["traceEvents"].array()) {
    if (event["ph"].text() == "X") names.insert(event["name"].text());
  }
  return names;
}

/// Arrows by the names of the slices that they leave and reach: those open at their ends.
std::set<std::pair<std::string, std::string>> arrows(const json& document) {
  const std::vector<json> events = document["traceEvents"].array();
  std::map<std::int64_t, std::pair<std::string, std::string>> found;
  for (const json& end : events) {
    const std::string phase = end["ph"].text();
    if (phase != "s" && phase != "f") continue;
    const double at = end["ts"].number();
    const json* inner = nullptr;
    for (const json& slice : events) {
      if (slice["ph"].text() != "X" || slice["tid"].integer() != end["tid"].integer()) continue;
      const double start = slice["ts"].number();
      if (start > at || at >= start + slice["dur"].number()) continue;
      if (inner == nullptr || start >= (*inner)["ts"].number()) inner = &slice;
    }
    REQUIRE(inner != nullptr);
    auto& arrow = found[end["id"].integer()];
    (phase == "s" ? arrow.first : arrow.second) = (*inner)["name"].text();
  }
  std::set<std::pair<std::string, std::string>> all;
  for (const auto& [id, arrow] : found) all.insert(arrow);
  CHECK(all.size() == found.size());  // none twice
  return all;
}

std::int64_t ns(const json& us) {
  return std::llround(us.number() * 1000);
}

/// A process with its threads, that measured time off the CPU.
void add_info(const temp_dir& dir, const std::string& more = "cpu switches\n") {
  dir.file(".lotus_info_7_1",
           "pid 7\nparent 1\nhost Snode\n" + more +
               "thread 10 Strain\nthread 11 Sloop\nthread 12 Spool\nthread 13 Spool\n");
}

}  // namespace

TEST_CASE("spans of stages are slices of their own, with their item and batch") {
  const temp_dir dir;
  add_stages(dir);
  const json document = draw(dir.path());
  CHECK(slices(document) ==
        std::multiset<std::string>{"SRead_0", "SRead_1", "SRead_2", "SRead_3", "SDecode_0",
                                   "SDecode_1", "SDecode_2", "SDecode_3", "SIdct", "SIdct", "SIdct",
                                   "SIdct", "SCollate_0", "SCollate_1", "SBatchWait_0",
                                   "SBatchWait_1", "step 0", "step 1"});
  const json decode = named(document, "SDecode_2").at(0);
  CHECK(decode["cat"].text() == "stage");
  CHECK(decode["args"]["item"].integer() == 2);
  CHECK(decode["args"]["batch"].integer() == 1);
  CHECK(ns(decode["dur"]) == 20'000'000);
  CHECK_FALSE(named(document, "SCollate_1").at(0)["args"].has("item"));
  // Coarse: without the operations, but with the stages.
  CHECK(slices(draw(dir.path(), {"--coarse"})).count("SIdct") == 0);
  CHECK(slices(draw(dir.path(), {"--coarse"})).count("SDecode_2") == 1);
  CHECK(slices(draw(dir.path(), {"--op", "Read"})).count("SDecode_2") == 0);
}

TEST_CASE("arrows follow an item from stage to stage, into its batch, to the consumer") {
  const temp_dir dir;
  add_stages(dir);
  std::set<std::pair<std::string, std::string>> expected;
  for (int item = 0; item < 4; ++item) {
    const std::string number = '_' + std::to_string(item);
    expected.insert({"SRead" + number, "SDecode" + number});
    expected.insert({"SDecode" + number, "SCollate_" + std::to_string(item / 2)});
  }
  expected.insert({"SCollate_0", "step 0"});
  expected.insert({"SCollate_1", "step 1"});
  CHECK(arrows(draw(dir.path())) == expected);
  // An arrow needs both its ends in the picture.
  CHECK(arrows(draw(dir.path(), {"--op", "Decode", "--op", "Read"})).size() == 4);
}

TEST_CASE("only the slowest items of a stage, on all their way") {
  const temp_dir dir;
  add_stages(dir);
  CHECK(slices(draw(dir.path(), {"--only-slowest", "Decode:1"})) ==
        std::multiset<std::string>{"SRead_2", "SDecode_2", "SIdct"});
  // A stage whose numbers are batches: their waits and steps too.
  CHECK(slices(draw(dir.path(), {"--only-slowest", "SCollate:1"})) ==
        std::multiset<std::string>{"SCollate_0", "SBatchWait_0", "step 0"});
  // A batch with all its items.
  CHECK(slices(draw(dir.path(), {"--only-slowest", "1"})) ==
        std::multiset<std::string>{"SRead_2", "SRead_3", "SDecode_2", "SDecode_3", "SIdct", "SIdct",
                                   "SCollate_1", "SBatchWait_1", "step 1"});
  const result none = run({"viz", dir.path(), "-o", "-", "--only-slowest", "Resize:1"});
  CHECK(none.status == 2);
  CHECK(none.err == "lotus-tool: --only-slowest: there is no stage 'Resize'\n");
  for (const std::string wrong : {"Decode:0", "Decode:", ":3", "x"}) {
    CHECK(run({"viz", dir.path(), "-o", "-", "--only-slowest", wrong}).status == 2);
  }
}

TEST_CASE("counters are tracks of their process") {
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_11", "SRead,1000,5000\n");
  dir.file(".lotus_beside_lotustrace_log_pid_11",
           "counter,Sdecoded queue,2000,3,0\ncounter,Sdecoded queue,4000,-9000000000000000000,0\n");
  const json document = draw(dir.path());
  const std::vector<json> values = named(document, "decoded queue");
  REQUIRE(values.size() == 2);
  CHECK(values[0]["ph"].text() == "C");
  CHECK(ns(values[0]["ts"]) == 1000);
  CHECK(values[0]["args"]["value"].integer() == 3);
  CHECK(values[1]["args"]["value"].integer() == -9000000000000000000);
  CHECK(values[0]["pid"].integer() == named(document, "SRead")[0]["pid"].integer());
}

TEST_CASE("counters alone are drawn too") {
  const temp_dir dir;
  dir.file(".lotus_beside_lotustrace_log_pid_11", "counter,Squeue,2000,3,0\n");
  CHECK(named(draw(dir.path()), "queue").size() == 1);
}

TEST_CASE("an asynchronous operation has a track of its own, with when it ran") {
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_11", "SLoad,1000,500\nSLoad,1600,100\n");
  dir.file("lotustrace_log_worker_pid_12", "SLoad,4000,500\n");
  dir.file(".lotus_beside_lotustrace_log_pid_11",
           "piece,SLoad,1000,500,5\npiece,SLoad,1600,100,6\n");
  dir.file(".lotus_beside_lotustrace_log_pid_12", "piece,SLoad,4000,500,5\n");
  const json document = draw(dir.path());
  std::map<std::int64_t, std::vector<std::string>> by_id;
  for (const json& event : document["traceEvents"].array()) {
    const std::string phase = event["ph"].text();
    if (phase != "b" && phase != "e") continue;
    CHECK(event["cat"].text() == "async");
    by_id[event["id"].integer()].push_back(phase + ' ' + event["name"].text() + ' ' +
                                           std::to_string(ns(event["ts"])));
  }
  REQUIRE(by_id.size() == 2);
  CHECK(by_id.begin()->second == std::vector<std::string>{"b SLoad 0", "b running 0",
                                                          "e running 500", "b running 3000",
                                                          "e running 3500", "e SLoad 3500"});
  CHECK(by_id.rbegin()->second.front() == "b SLoad 600");
  CHECK(slices(document) == std::multiset<std::string>{"SLoad", "SLoad", "SLoad"});
}

TEST_CASE("time off the CPU is a track below its thread, once for all loaders") {
  const temp_dir dir;
  add_info(dir);
  dir.file("lotustrace_log_worker_pid_11", "SRead,1000,9000\n");
  dir.file("val/lotustrace_log_worker_pid_11", "SRead,21000,9000\n");
  dir.file(".lotus_beside_lotustrace_log_pid_11",
           "off_cpu,,3000,1000,900\noff_cpu,,6000,2000,0\noff_cpu,,9000,500,\n");
  dir.file("val/.lotus_beside_lotustrace_log_pid_11", "off_cpu,,25000,1000,0\n");
  const json document = draw(dir.path());
  const std::vector<json> waits = named(document, "no CPU");
  REQUIRE(waits.size() == 1);
  CHECK(ns(waits[0]["ts"]) == 1000);
  CHECK(ns(waits[0]["dur"]) == 1000);
  CHECK(waits[0]["args"]["run_queue_ns"].integer() == 900);
  CHECK(waits[0]["args"]["blocked_ns"].integer() == 100);
  CHECK(named(document, "blocked").size() == 2);
  CHECK(named(document, "off the CPU").size() == 1);
  CHECK(waits[0]["tid"].integer() != named(document, "SRead")[0]["tid"].integer());
  std::vector<std::string> threads;
  for (const json& thread : named(document, "thread_name")) {
    threads.push_back(thread["args"]["name"].text());
  }
  std::sort(threads.begin(), threads.end());
  CHECK(threads == std::vector<std::string>{"worker 11 (loop)", "worker 11 (loop)",
                                            "worker 11 (loop) (off the CPU)"});
  // Where it was not measured there is no such track.
  add_info(dir, "cpu off\n");
  CHECK(named(draw(dir.path()), "blocked").empty());
}

TEST_CASE("loaders are groups of their own") {
  const temp_dir dir;
  add_info(dir);
  add_stages(dir);
  add_stages(dir, "val%2F2/");
  const json document = draw(dir.path());
  std::set<std::string> groups;
  for (const json& process : named(document, "process_name")) {
    const std::string name = process["args"]["name"].text();
    groups.insert(name.substr(std::min(name.find(", loader"), name.find(": node"))));
  }
  CHECK(groups == std::set<std::string>{": node, pid 7", ", loader val/2: node, pid 7"});
  const std::vector<json> read = named(document, "SRead_0");
  REQUIRE(read.size() == 2);
  CHECK(read[0]["pid"].integer() != read[1]["pid"].integer());
  CHECK(read[0]["tid"].integer() != read[1]["tid"].integer());
  CHECK(named(document, "thread_name").size() == 8);
  // The other loader has no such batch or stage.
  dir.file("test/lotustrace_log_worker_pid_11", "SOther,100000000,10\n");
  const result r = run({"viz", dir.path(), "-o", "-", "--only-slowest", "Decode:1"});
  CHECK(r.status == 0);
  CHECK(r.err == "warning: " + dir.path() + "/test: skipped: it has no such batch or stage\n");
}

TEST_CASE("a profiler's trace beside a run is merged with all its loaders") {
  const temp_dir dir;
  add_info(dir);
  add_stages(dir);
  add_stages(dir, "val/");
  dir.file("t.json",
           R"({"traceEvents":[{"ph":"X","name":"aten","pid":1,"tid":1,"ts":100000,"dur":5}]})");
  const result r = run({"viz", dir.path(), "-q"});
  CHECK(r.err.empty());
  REQUIRE(r.status == 0);
  CHECK(named(parse_json(read_file(dir.path() + "/t_fine.json")), "SRead_0").size() == 2);
  CHECK(named(draw(dir.path()), "aten").size() == 1);
}
