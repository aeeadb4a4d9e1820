#include "viz_test.hpp"

#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

/// A slice or an end of an arrow, with exact times in ns.
struct event {
  std::string phase;
  std::string name;
  std::int64_t pid = 0;
  std::int64_t tid = 0;
  std::int64_t start = 0;
  std::int64_t duration = 0;
  std::int64_t id = 0;
};

struct picture {
  std::int64_t base = 0;
  std::vector<event> events;
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> threads;
  std::map<std::int64_t, std::string> processes;

  std::vector<event> named(const std::string& name) const {
    std::vector<event> found;
    for (const event& e : events) {
      if (e.name == name) found.push_back(e);
    }
    return found;
  }
  std::vector<event> of_phase(const std::string& phase) const {
    std::vector<event> found;
    for (const event& e : events) {
      if (e.phase == phase) found.push_back(e);
    }
    return found;
  }
};

std::int64_t ns(const json& us) {
  return std::llround(us.number() * 1000);
}

picture picture_of(const std::string& dir, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{"viz", dir, "-o", "-"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const auto document = parse_json(run_well(arguments).out);
  picture p;
  p.base = document["baseTimeNanoseconds"].integer();
  for (const auto& json : document["traceEvents"].array()) {
    const std::string phase = json["ph"].text();
    const std::string name = numbered(json);
    if (name == "thread_name") {
      p.threads[{json["pid"].integer(), json["tid"].integer()}] = json["args"]["name"].text();
    }
    if (name == "process_name") p.processes[json["pid"].integer()] = json["args"]["name"].text();
    if (phase == "M") continue;
    // A counter belongs to a process and has no thread.
    const std::int64_t tid = json.has("tid") ? json["tid"].integer() : 0;
    event e{phase, name, json["pid"].integer(), tid, ns(json["ts"]), 0, 0};
    if (json.has("dur")) e.duration = ns(json["dur"]);
    if (json.has("id")) e.id = json["id"].integer();
    CHECK(e.start >= 0);
    p.events.push_back(e);
  }
  return p;
}

/// Checks for every track that slices are in order of their starts, and that they nest.
void check_nesting(const picture& p) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<event>> open;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> last;
  for (const event& e : p.events) {
    if (e.phase != "X") continue;
    INFO(e.name << " at " << e.start << " on " << e.tid);
    auto& stack = open[{e.pid, e.tid}];
    auto& before = last[{e.pid, e.tid}];
    REQUIRE(e.start >= before);
    before = e.start;
    while (!stack.empty() && stack.back().start + stack.back().duration <= e.start)
      stack.pop_back();
    if (!stack.empty()) {
      REQUIRE(e.start + e.duration <= stack.back().start + stack.back().duration);
    }
    stack.push_back(e);
    CHECK(p.threads.count({e.pid, e.tid}) == 1);
  }
}

/// Checks that every arrow has two ends, each inside a slice of its track.
void check_flows(const picture& p) {
  std::map<std::int64_t, std::string> ends;
  for (const event& e : p.events) {
    if (e.phase != "s" && e.phase != "f") continue;
    ends[e.id] += e.phase;
    bool inside = false;
    for (const event& slice : p.events) {
      inside |= slice.phase == "X" && slice.tid == e.tid && slice.start <= e.start &&
                e.start < slice.start + slice.duration;
    }
    INFO(e.phase << " of " << e.id);
    CHECK(inside);
  }
  for (const auto& [id, phases] : ends) {
    INFO(id << ' ' << phases);
    CHECK((phases == "sf" || phases == "fs"));
  }
}

}  // namespace

TEST_CASE("viz draws a batch from preprocessing to consumption") {
  const picture p = picture_of(traces() + "/quirks/good");
  CHECK(p.base == 1699999999990000000);
  check_nesting(p);
  check_flows(p);
  REQUIRE(p.named("BatchPreprocessed_0").size() == 1);
  const event made = p.named("BatchPreprocessed_0")[0];
  CHECK(made.start == 10000000);
  CHECK(made.duration == 2800000);
  CHECK(made.tid == 101);
  REQUIRE(p.of_phase("s").size() == 1);
  const event leaves = p.of_phase("s")[0];
  CHECK(leaves.start == made.start + made.duration - 1);
  CHECK(leaves.tid == made.tid);
  REQUIRE(p.named("step_0").size() == 1);
  CHECK(p.of_phase("f")[0].start == p.named("step_0")[0].start);
  CHECK(p.of_phase("f")[0].tid == 100);
  CHECK(p.named("ToTensor")[0].start == 12600000);
  CHECK(p.named("ToTensor")[0].duration == 900);
  CHECK(p.processes.size() == 1);
  CHECK(p.processes.begin()->second == "good");
  CHECK(p.threads.at({100, 100}) == "main 100");
  CHECK(p.threads.at({100, 101}) == "worker 101");
}

TEST_CASE("--coarse draws batches only") {
  const picture p = picture_of(traces() + "/quirks/good", {"--coarse"});
  CHECK(p.of_phase("X").size() == 3);
  CHECK(p.named("Loader").empty());
}

TEST_CASE("a step lasts until the next wait begins, and markers do not end it") {
  const temp_dir dir;
  dir.file("lotustrace_log_main_pid_1",
           "SBatchQueued_0,500,1000\n"
           "SBatchWait_1,1500,1000\nSBatchWait_0,1000,1000000\nSBatchConsumed_0,2000000,1000\n"
           "SBatchConsumed_1,3000000,1000\nSBatchWait_2,5000000,2000\n"
           "SBatchConsumed_2,6000000,1000\n");
  const picture p = picture_of(dir.path());
  check_nesting(p);
  CHECK(p.named("step_0")[0].duration == 1000000);
  CHECK(p.named("step_1")[0].duration == 2000000);
  // The step's end is unknown, so the duration is the placeholder in the log.
  CHECK(p.named("step_2")[0].duration == 1000);
  CHECK(p.named("BatchWait_1").empty());
  REQUIRE(p.named("BatchWait (out of order)_1").size() == 1);
  CHECK(p.named("BatchWait (out of order)_1")[0].phase == "i");
  CHECK(p.named("BatchWait_0")[0].phase == "X");
  CHECK(p.named("BatchQueued_0")[0].phase == "i");
  CHECK(p.of_phase("s").empty());  // there is no preprocessing, so no arrow may begin
  CHECK(p.of_phase("f").empty());
}

TEST_CASE("arrows of different epochs have different ids") {
  const picture p = picture_of(traces() + "/quirks/ids_repeat_two_epochs");
  check_nesting(p);
  check_flows(p);
  std::set<std::int64_t> ids;
  for (const event& e : p.of_phase("s")) ids.insert(e.id);
  CHECK(ids.size() == 2);
}

TEST_CASE("each of several runs is a process group") {
  const picture p = picture_of(traces() + "/quirks/subdirs");
  check_nesting(p);
  check_flows(p);
  std::set<std::string> names;
  for (const auto& [pid, name] : p.processes) names.insert(name);
  CHECK(names == std::set<std::string>{"b1_gpu1", "b2_gpu1"});
  CHECK(p.threads.size() == 4);
  std::set<std::int64_t> tids;
  for (const auto& [place, name] : p.threads) tids.insert(place.second);
  CHECK(tids.size() == 4);
}

TEST_CASE("slices of real runs nest, and their arrows begin and end at slices") {
  std::vector<std::string> dirs{traces() + "/c_ooo_w4"};
  if (shared_traces().empty()) {
    lotus_test::skip("the larger set of traces is absent; one run drawn");
  } else {
    for (const auto* name : {"a_preproc_w1", "d_consumer_w2", "h_epochs2_w2"}) {
      dirs.push_back(shared_traces() + '/' + name);
    }
  }
  for (const std::string& dir : dirs) {
    INFO(dir);
    const picture p = picture_of(dir);
    check_nesting(p);
    check_flows(p);
    CHECK(p.of_phase("s").size() >= 19);
  }
  CHECK(picture_of(traces() + "/c_ooo_w4").of_phase("i").size() == 44);
}

TEST_CASE("a thread with a main log and a worker log gets a track for each") {
  const temp_dir dir;
  dir.file("lotustrace_log_main_pid_9", "SBatchConsumed_0,5000,1000\nSBatchWait_1,9000,100\n");
  dir.file("lotustrace_log_worker_pid_9", "SOver,4000,3000\n");
  const picture p = picture_of(dir.path());
  check_nesting(p);
  CHECK(p.threads.size() == 2);
}

TEST_CASE("process and thread numbers are replaced by ones that viewers can hold") {
  const temp_dir dir;
  dir.file("lotustrace_log_main_pid_18446744073709551615", "SBatchWait_0,1,2\n");
  dir.file("lotustrace_log_worker_pid_0", "SA,1,2\n");
  for (const auto& [place, name] : picture_of(dir.path()).threads) {
    CHECK(place.first >= 1);
    CHECK(place.second >= 1);
    CHECK(place.second <= UINT32_MAX);
  }
}

TEST_CASE("a parent is written before its children, even from a log in order of ends") {
  const temp_dir dir;
  std::string log;
  for (int batch = 0; batch < 3; ++batch) {
    const std::int64_t at = batch * 100'000'000;
    // The loop writes more operations than the reader keeps in memory while it sorts.
    for (std::int64_t i = 0; i < 9000; ++i) {
      const std::int64_t start = at + i * 1000;
      log += "SFirst," + std::to_string(start) + ",400\n";
      log += "SSecond," + std::to_string(start + 400) + ",500\n";
      log += "STransform," + std::to_string(start) + ",900\n";
    }
    log += "SBatchPreprocessed_" + std::to_string(batch) + ',' + std::to_string(at) + ",9000000\n";
  }
  dir.file("lotustrace_log_worker_pid_1", log);
  check_nesting(picture_of(dir.path()));
}

TEST_CASE("names are decoded, and none can break the JSON") {
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_1",
           "S%42atchWait_3,1,2\nSa%22%2C%0A%5C,1,2\nS%FF\xFE,1,2\nS</script>\x01,1,2\n");
  const picture p = picture_of(dir.path());
  CHECK(p.named("BatchWait_3").size() == 1);
  CHECK(p.named("a\",\n\\").size() == 1);
  CHECK(p.named("%FF%FE").size() == 1);
  CHECK(p.named("</script>\x01").size() == 1);
}

TEST_CASE("a very long name is drawn in full") {
  const temp_dir dir;
  const std::string name(100'000, 'n');
  dir.file("lotustrace_log_worker_pid_1", 'S' + name + ",1,2\nS" + name + ",5,2\n");
  CHECK(picture_of(dir.path()).named(name).size() == 2);
}

TEST_CASE("slices of many stages on one thread keep their names, also very long ones") {
  const temp_dir dir;
  std::string log;
  std::string stages;
  std::vector<std::string> names;
  for (int i = 0; i < 40; ++i) {
    // The names occur twice, so that they are drawn again after others.
    const int of = i % 20;
    names.push_back((of == 7 ? std::string(6000, 'x') : "Stage\"") + std::to_string(of));
    std::string escaped = names.back();
    if (const std::size_t quote = escaped.find('"'); quote != std::string::npos) {
      escaped.replace(quote, 1, "%22");
    }
    const std::string span = 'S' + escaped + ',' + std::to_string(1000 + i * 100) + ",50";
    log += span + '\n';
    stages += "stage," + span + ',' + std::to_string(i) + '\n';
  }
  dir.file("lotustrace_log_worker_pid_11", log);
  dir.file(".lotus_beside_lotustrace_log_pid_11", stages);
  std::size_t found = 0;
  const json trace = parse_json(run({"viz", dir.path(), "-o", "-", "-q"}).out);
  for (const json& event : trace["traceEvents"].array()) {
    if (event["ph"].text() != "X") continue;
    REQUIRE(found < names.size());
    CHECK(event["cat"].text() == "stage");
    CHECK(event["name"].text() == names[found]);
    CHECK(event["ts"].number() == Approx(0.1 * static_cast<double>(found)));
    // May be 0.001 ns shorter, so that slices do not overlap in a viewer.
    CHECK(event["dur"].number() == Approx(0.05).margin(1.1e-6));
    ++found;
  }
  CHECK(found == names.size());
}

TEST_CASE("viz does not overwrite a log, nor create a file with the name of one") {
  const temp_dir dir;
  const std::string log = dir.file("lotustrace_log_worker_pid_1", "SA,1,2\n");
  CHECK(run({"viz", dir.path(), "-o", log}).status == 2);
  CHECK(run({"viz", dir.path(), "-o", dir.path() + "/lotustrace_log_2"}).status == 2);
  CHECK(read_file(log) == "SA,1,2\n");
  CHECK(dir.names().size() == 1);
}
