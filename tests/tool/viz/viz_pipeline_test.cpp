// Tests how viz draws stages, items, loaders, counters, asynchronous operations and time off the
// CPU.
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

/// Writes a pipeline: thread 11 reads items, thread 12 decodes them, thread 13 collates two items
/// to a batch, and thread 10 is the consumer. Each item is read for 2 ms and decoded for 3 ms, but
/// item 2 is decoded for 20 ms. Batch 0 consists of items 0 and 1, batch 1 of items 2 and 3.
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
    if (event["ph"].text() != "X") continue;
    const std::string category = event["cat"].text();
    if (category != "path" && category != "verdict") names.insert(numbered(event));
  }
  return names;
}

/// Returns the arrows, each as the names of the slices where it begins and ends.
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
    (phase == "s" ? arrow.first : arrow.second) = numbered(*inner);
  }
  std::set<std::pair<std::string, std::string>> all;
  for (const auto& [id, arrow] : found) all.insert(arrow);
  CHECK(all.size() == found.size());  // no arrow may occur twice
  return all;
}

std::int64_t ns(const json& us) {
  return std::llround(us.number() * 1000);
}

/// Adds the information file of a process that measured its threads' time off the CPU.
void add_info(const temp_dir& dir, const std::string& more = "cpu switches\n") {
  dir.file(".lotus_info_7_1",
           "pid 7\nparent 1\nhost Snode\n" + more +
               "thread 10 Strain\nthread 11 Sloop\nthread 12 Spool\nthread 13 Spool\n");
}

}  // namespace

TEST_CASE("stage spans are drawn as slices with their item and batch") {
  const temp_dir dir;
  add_stages(dir);
  const json document = draw(dir.path());
  CHECK(slices(document) == std::multiset<std::string>{
                                "Read_0", "Read_1", "Read_2", "Read_3", "Decode_0", "Decode_1",
                                "Decode_2", "Decode_3", "Idct", "Idct", "Idct", "Idct", "Collate_0",
                                "Collate_1", "BatchWait_0", "BatchWait_1", "step_0", "step_1"});
  const json decode = named(document, "Decode_2").at(0);
  CHECK(decode["cat"].text() == "stage");
  CHECK(decode["args"]["item"].integer() == 2);
  CHECK(decode["args"]["batch"].integer() == 1);
  CHECK(ns(decode["dur"]) == 20'000'000);
  CHECK_FALSE(named(document, "Collate_1").at(0)["args"].has("item"));
  // Draws the stages, but not the operations.
  CHECK(slices(draw(dir.path(), {"--coarse"})).count("Idct") == 0);
  CHECK(slices(draw(dir.path(), {"--coarse"})).count("Decode_2") == 1);
  CHECK(slices(draw(dir.path(), {"--op", "Read"})).count("Decode_2") == 0);
}

TEST_CASE("arrows follow an item from stage to stage, into its batch and to the consumer") {
  const temp_dir dir;
  add_stages(dir);
  std::set<std::pair<std::string, std::string>> expected;
  for (int item = 0; item < 4; ++item) {
    const std::string number = '_' + std::to_string(item);
    expected.insert({"Read" + number, "Decode" + number});
    expected.insert({"Decode" + number, "Collate_" + std::to_string(item / 2)});
  }
  expected.insert({"Collate_0", "step_0"});
  expected.insert({"Collate_1", "step_1"});
  CHECK(arrows(draw(dir.path())) == expected);
  // An arrow is drawn only if the slices at both of its ends are drawn.
  CHECK(arrows(draw(dir.path(), {"--op", "Decode", "--op", "Read"})).size() == 4);
}

TEST_CASE("--only-slowest STAGE:N draws the slowest items of a stage, in all stages") {
  const temp_dir dir;
  add_stages(dir);
  CHECK(slices(draw(dir.path(), {"--only-slowest", "Decode:1"})) ==
        std::multiset<std::string>{"Read_2", "Decode_2", "Idct"});
  // If a stage works on batches, the batches' waits and steps must be drawn too.
  CHECK(slices(draw(dir.path(), {"--only-slowest", "SCollate:1"})) ==
        std::multiset<std::string>{"Collate_0", "BatchWait_0", "step_0"});
  // A batch must be drawn with all its items.
  CHECK(slices(draw(dir.path(), {"--only-slowest", "1"})) ==
        std::multiset<std::string>{"Read_2", "Read_3", "Decode_2", "Decode_3", "Idct", "Idct",
                                   "Collate_1", "BatchWait_1", "step_1"});
  const result none = run({"viz", dir.path(), "-o", "-", "--only-slowest", "Resize:1"});
  CHECK(none.status == 2);
  CHECK(none.err == "lotus-tool: --only-slowest: there is no stage 'Resize'\n");
  for (const std::string wrong : {"Decode:0", "Decode:", ":3", "x"}) {
    CHECK(run({"viz", dir.path(), "-o", "-", "--only-slowest", wrong}).status == 2);
  }
}

TEST_CASE("slices of one stage share a name, and threads have their program's full name") {
  const temp_dir dir;
  add_stages(dir);
  dir.file(".lotus_info_7_1",
           "pid 7\nparent 1\nhost Snode\ncommand S/opt/bin/imagenet_pipeline%20--fast\n"
           "thread 10 Strain\nthread 11 Simagenet_pipeli\nthread 12 Simagenet\n");
  const json document = draw(dir.path());
  std::multiset<std::string> names;
  std::multiset<std::string> threads;
  for (const json& event : document["traceEvents"].array()) {
    if (event["ph"].text() == "X") names.insert(event["name"].text());
    if (event["name"].text() == "thread_name") threads.insert(event["args"]["name"].text());
  }
  CHECK(names.count("BatchWait") == 2);
  CHECK(names.count("Decode") == 4);
  CHECK(names.count("step") == 2);
  CHECK(threads.count("main 10 (train)") == 1);
  CHECK(threads.count("worker 11 (imagenet_pipeline)") == 1);
  CHECK(threads.count("worker 12 (imagenet)") == 1);
  // With --compat, names must contain the batches' numbers, as in the original LotusTrace.
  const json compat = draw(dir.path(), {"--compat"});
  CHECK(named(compat, "SBatchWait_1").size() == 1);
}

TEST_CASE("the verdict and the critical path are tracks with the times that diagnose shows") {
  const std::string folder = traces() + "/c_ooo_w4";
  const json document = draw(folder);
  const json judged = parse_json(run({"diagnose", folder, "--json"}).out);
  std::map<std::string, std::int64_t> tracks;
  for (const json& event : document["traceEvents"].array()) {
    if (event["name"].text() != "thread_name") continue;
    tracks[event["args"]["name"].text()] = event["tid"].integer();
  }
  REQUIRE(tracks.count("verdict") == 1);
  REQUIRE(tracks.count("critical path") == 1);
  std::size_t verdicts = 0;
  std::map<std::string, double> path_us;
  double last_us = 0;
  for (const json& event : document["traceEvents"].array()) {
    if (event["ph"].text() != "X") continue;
    if (event["tid"].integer() == tracks["verdict"]) {
      ++verdicts;
      const json& screen = judged["screen"];
      CHECK(event["name"].text() == screen["headline"].text());
      CHECK(event["args"]["reason"].text() == screen["why"].text());
      const json& first = screen["advice"][0];
      const std::string suggestion =
          event["args"][screen["advice"].size() == 1 ? "suggestion" : "suggestion 1"].text();
      CHECK(suggestion.find(first["change"].text() + ": run time " + first["now"].text()) == 0);
    }
    if (event["tid"].integer() != tracks["critical path"]) continue;
    CHECK(event["ts"].number() >= last_us - 0.001);
    last_us = event["ts"].number() + event["dur"].number();
    path_us[event["name"].text()] += event["dur"].number();
    if (event["name"].text() == "Loader (critical path)") {
      CHECK(contains(event["args"]["thread"].text(), "worker"));
    }
  }
  CHECK(verdicts == 1);
  std::size_t compared = 0;
  for (const json& share : judged["critical_path"].array()) {
    if (!share.has("name")) continue;
    INFO(share["name"].text());
    const double drawn_us = path_us[share["name"].text() + " (critical path)"];
    CHECK(std::abs(drawn_us - share["ns"].number() / 1000) < 1);
    ++compared;
  }
  CHECK(compared >= 5);
  // The tracks of the critical path and the verdict must be missing if only a part of the run is
  // drawn, or with --compat.
  for (const std::vector<std::string>& part :
       {std::vector<std::string>{"--coarse"}, {"--op", "Loader"}, {"--compat"}}) {
    for (const json& event : draw(folder, part)["traceEvents"].array()) {
      if (event["name"].text() != "thread_name") continue;
      CHECK(event["args"]["name"].text() != "critical path");
    }
  }
}

TEST_CASE("the verdict is drawn only for runs of up to 200,000 operations") {
  constexpr std::int64_t batches = 40;
  for (const std::int64_t calls : {200'000 / batches, 200'000 / batches + 1}) {
    const temp_dir dir;
    std::string worker;
    std::string main;
    for (std::int64_t i = 0; i < batches; ++i) {
      const std::int64_t at = i * 20'000'000;
      const std::string number = std::to_string(i) + ',';
      for (std::int64_t call = 0; call < calls; ++call) {
        worker += "SRead," + std::to_string(at + call * 3000) + ",2000\n";
      }
      worker += "SBatchPreprocessed_" + number + std::to_string(at) + ",19000000\n";
      main += "SBatchWait_" + number + std::to_string(at) + ",19000100\nSBatchConsumed_" + number +
              std::to_string(at + 19'000'200) + ",1000\n";
    }
    dir.file("lotustrace_log_worker_pid_11", worker);
    dir.file("lotustrace_log_main_pid_10", main);
    INFO(calls);
    const result drawn = run({"viz", dir.path(), "-o", "-", "-q"});
    REQUIRE(drawn.status == 0);
    CHECK(contains(drawn.out, "critical path") == (calls * batches <= 200'000));
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
  CHECK(values[0]["pid"].integer() == named(document, "Read")[0]["pid"].integer());
}

TEST_CASE("a run with only counters is drawn") {
  const temp_dir dir;
  dir.file(".lotus_beside_lotustrace_log_pid_11", "counter,Squeue,2000,3,0\n");
  CHECK(named(draw(dir.path()), "queue").size() == 1);
}

TEST_CASE("an asynchronous operation has a track that shows when it ran") {
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
  CHECK(by_id.begin()->second == std::vector<std::string>{"b Load 0", "b running 0",
                                                          "e running 500", "b running 3000",
                                                          "e running 3500", "e Load 3500"});
  CHECK(by_id.rbegin()->second.front() == "b Load 600");
  CHECK(slices(document) == std::multiset<std::string>{"Load", "Load", "Load"});
}

TEST_CASE("time off the CPU is one track below its thread for all loaders") {
  const temp_dir dir;
  add_info(dir);
  dir.file("lotustrace_log_worker_pid_11", "SRead,1000,9000\n");
  dir.file("val/lotustrace_log_worker_pid_11", "SRead,21000,9000\n");
  dir.file(".lotus_beside_lotustrace_log_pid_11",
           "off_cpu,,3000,1000,900\noff_cpu,,6000,2000,0\noff_cpu,,9000,500,\n");
  dir.file("val/.lotus_beside_lotustrace_log_pid_11", "off_cpu,,25000,1000,0\n");
  const json document = draw(dir.path());
  const std::vector<json> waits = named(document, "waits for CPU");
  REQUIRE(waits.size() == 1);
  CHECK(ns(waits[0]["ts"]) == 1000);
  CHECK(ns(waits[0]["dur"]) == 1000);
  CHECK(waits[0]["args"]["run_queue_ns"].integer() == 900);
  CHECK(waits[0]["args"]["blocked_ns"].integer() == 100);
  CHECK(named(document, "blocked").size() == 2);
  CHECK(named(document, "off the CPU").size() == 1);
  CHECK(waits[0]["tid"].integer() != named(document, "Read")[0]["tid"].integer());
  std::vector<std::string> threads;
  for (const json& thread : named(document, "thread_name")) {
    threads.push_back(thread["args"]["name"].text());
  }
  std::sort(threads.begin(), threads.end());
  CHECK(threads == std::vector<std::string>{"worker 11 (loop)", "worker 11 (loop)",
                                            "worker 11 (loop) (off the CPU)"});
  // If no CPU time was measured, the track of the time off the CPU must be missing.
  add_info(dir, "cpu off\n");
  CHECK(named(draw(dir.path()), "blocked").empty());
}

TEST_CASE("each loader is a group of tracks") {
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
  const std::vector<json> read = named(document, "Read_0");
  REQUIRE(read.size() == 2);
  CHECK(read[0]["pid"].integer() != read[1]["pid"].integer());
  CHECK(read[0]["tid"].integer() != read[1]["tid"].integer());
  // Each loader has six tracks: those of its four threads, of the critical path and of the verdict.
  CHECK(named(document, "thread_name").size() == 12);
  // The loader "test" has no stage Decode.
  dir.file("test/lotustrace_log_worker_pid_11", "SOther,100000000,10\n");
  const result r = run({"viz", dir.path(), "-o", "-", "--only-slowest", "Decode:1"});
  CHECK(r.status == 0);
  CHECK(r.err == "warning: " + dir.path() + "/test: skipped: it has no such batch or stage\n");
}

TEST_CASE("a profiler's trace in the run directory is merged with all loaders") {
  const temp_dir dir;
  add_info(dir);
  add_stages(dir);
  add_stages(dir, "val/");
  dir.file("t.json",
           R"({"traceEvents":[{"ph":"X","name":"aten","pid":1,"tid":1,"ts":100000,"dur":5}]})");
  const result r = run({"viz", dir.path(), "-q"});
  CHECK(r.err.empty());
  REQUIRE(r.status == 0);
  CHECK(named(parse_json(read_file(dir.path() + "/t_fine.json")), "Read_0").size() == 2);
  CHECK(named(draw(dir.path()), "aten").size() == 1);
}
