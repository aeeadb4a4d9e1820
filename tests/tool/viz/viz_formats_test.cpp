// Tests the output of viz in the format of Perfetto, and of both formats compressed.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

/// Returns whether protoc is installed, which can convert a trace to text.
bool can_decode() {
  const bool found = *LOTUS_PROTOC != '\0';
  if (!found) lotus_test::skip("protoc is absent");
  return found;
}

std::string decoded(const temp_dir& dir, const std::string& trace) {
  const std::string protoc = LOTUS_PROTOC;
  const std::string proto = LOTUS_TRACE_PROTO;
  const std::string folder = proto.substr(0, proto.rfind('/'));
  const std::string command = "'" + protoc + "' --decode=Trace --proto_path='" + folder + "' '" +
                              proto + "' <'" + trace + "' >'" + dir.path() + "/text'";
  REQUIRE(std::system(command.c_str()) == 0);
  return read_file(dir.path() + "/text");
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

/// Returns the packets in the text of protoc, each as one string.
std::vector<std::string> packets(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    if (line == "packet {") {
      all.emplace_back();
    } else if (!all.empty()) {
      all.back() += line + '\n';
    }
  }
  return all;
}

std::int64_t number_behind(const std::string& text, const std::string& key) {
  const std::size_t at = text.find(key);
  return at == std::string::npos ? -1 : std::atoll(text.c_str() + at + key.size());
}

}  // namespace

TEST_CASE("a Perfetto trace can be decoded, and its slices begin and end in order") {
  const temp_dir dir;
  const std::string trace = dir.path() + "/t.pftrace";
  REQUIRE(run({"viz", traces() + "/c_ooo_w4", "-o", trace, "--format", "perfetto"}).status == 0);
  if (!can_decode()) return;
  const std::string text = decoded(dir, trace);
  // The run has 3,675 operations, 75 preprocessings, 31 waits, 75 steps, and 44 arrivals out of
  // order. Categories 7 and 8 are the critical path and the verdict.
  CHECK(count(text, "category_iids: 7\n") > 100);
  CHECK(count(text, "category_iids: 8\n") == 1);
  CHECK(count(text, "name: \"critical path\"") == 1);
  CHECK(count(text, "name: \"verdict\"") >= 1);
  CHECK(count(text, "string_value: \"Why: ") == 1);
  CHECK(count(text, "TYPE_SLICE_BEGIN") ==
        3675 + 75 + 31 + 75 + count(text, "category_iids: 7\n") + 1);
  CHECK(count(text, "TYPE_SLICE_END") == count(text, "TYPE_SLICE_BEGIN"));
  CHECK(count(text, "TYPE_INSTANT") == 44);
  CHECK(count(text, " flow_ids:") == 75);
  CHECK(count(text, "terminating_flow_ids:") == 75);
  CHECK(count(text, "process_name: \"b8_gpu4\"") == 1);
  CHECK(count(text, "thread_name:") == 5);
  CHECK(count(text, "name: \"batches ready\"") == 1);
  CHECK(count(text, "event_names {") == 7);  // each name of an operation is written once
  std::map<std::int64_t, std::int64_t> last;
  std::map<std::int64_t, int> open;
  for (const std::string& packet : packets(text)) {
    const std::int64_t at = number_behind(packet, "timestamp: ");
    if (at < 0) continue;
    const std::int64_t track = number_behind(packet, "track_uuid: ");
    if (contains(packet, "TYPE_COUNTER")) continue;
    REQUIRE(at >= last[track]);
    last[track] = at;
    if (contains(packet, "TYPE_SLICE_BEGIN")) ++open[track];
    if (contains(packet, "TYPE_SLICE_END")) REQUIRE(--open[track] >= 0);
  }
  for (const auto& [track, n] : open) CHECK(n == 0);
}

namespace {

/// Adds a side log with a stage, a counter, time off the CPU, and two asynchronous operations at
/// the same time, one of which has segments on two threads.
void add_side_log(const temp_dir& dir) {
  dir.file(".lotus_info_7_1",
           "pid 7\nparent 1\nhost Snode\ncpu switches\nthread 11 Sloop\nthread 12 Spool\n");
  dir.file("lotustrace_log_main_pid_10", "SBatchWait_3,1000,8000\nSBatchConsumed_3,9000,100\n");
  dir.file("lotustrace_log_worker_pid_11", "SDecode,1000,3000\nSLoad,5000,1000\n");
  dir.file(".lotus_beside_lotustrace_log_pid_11",
           "stage,SDecode,1000,3000,3\npiece,SLoad,5000,1000,1\ncounter,Squeue,2000,-5,0\n"
           "off_cpu,,3000,500,400\n");
  dir.file("lotustrace_log_worker_pid_12", "SLoad,5500,100\nSLoad,7000,1000\nSCollate,8100,100\n");
  dir.file(".lotus_beside_lotustrace_log_pid_12",
           "piece,SLoad,5500,100,2\npiece,SLoad,7000,1000,1\nstage,SCollate,8100,100,3\n");
}

}  // namespace

TEST_CASE("a Perfetto trace has stages, counters, asynchronous operations and time off the CPU") {
  const temp_dir dir;
  add_side_log(dir);
  const std::string trace = dir.path() + "/t.pftrace";
  REQUIRE(run({"viz", dir.path(), "-o", trace, "--format", "perfetto"}).status == 0);
  if (!can_decode()) return;
  const std::string text = decoded(dir, trace);
  std::map<std::int64_t, std::string> names;  // names of tracks by uuid
  std::map<std::int64_t, std::int64_t> parents;
  std::map<std::string, std::int64_t> places;  // among its siblings, by the track's name
  std::map<std::string, std::string> events;   // events by the track's name
  std::vector<std::int64_t> leaving;
  std::vector<std::int64_t> arriving;
  for (const std::string& packet : packets(text)) {
    if (contains(packet, "track_descriptor {")) {
      const std::int64_t uuid = number_behind(packet, "uuid: ");
      const std::size_t name = packet.find("name: \"");
      names[uuid] = packet.substr(name + 7, packet.find('"', name + 7) - name - 7);
      parents[uuid] = number_behind(packet, "parent_uuid: ");
      CHECK(contains(packet, "child_ordering: EXPLICIT"));
      places[names[uuid]] = number_behind(packet, "sibling_order_rank: ");
    }
    if (!contains(packet, "track_event {")) continue;
    std::string& track = events[names[number_behind(packet, "track_uuid: ")]];
    track += std::to_string(number_behind(packet, "timestamp: "));
    const std::size_t name = packet.find("\n    name: \"");
    if (contains(packet, "TYPE_SLICE_BEGIN")) track += '(';
    if (contains(packet, "TYPE_SLICE_END")) track += ')';
    if (contains(packet, "TYPE_COUNTER"))
      track += '=' + std::to_string(number_behind(packet, "counter_value: "));
    if (name != std::string::npos) {
      track += packet.substr(name + 12, packet.find('"', name + 12) - name - 12);
    }
    track += ' ';
    if (contains(packet, " flow_ids:")) leaving.push_back(number_behind(packet, " flow_ids: "));
    if (contains(packet, "terminating_flow_ids:")) {
      arriving.push_back(number_behind(packet, "terminating_flow_ids: "));
    }
  }
  CHECK(events["queue"] == "2000=-5 ");
  // The two operations named Load overlap, so there must be two tracks with this name.
  CHECK(std::count_if(names.begin(), names.end(),
                      [](const auto& track) { return track.second == "Load"; }) == 2);
  CHECK(events["Load"] ==
        "5000(Load 5000(running 6000) 7000(running 8000) 8000) 5500(Load 5500(running 5600) "
        "5600) ");
  CHECK(events["worker 11 (loop) (off the CPU)"] == "2500(waits for CPU 3000) ");
  CHECK(contains(events["worker 11 (loop)"], "1000(Decode 4000) "));
  for (const auto& [uuid, name] : names) {
    if (name == "worker 11 (loop) (off the CPU)") CHECK(names[parents[uuid]] == "worker 11 (loop)");
    if (name == "Load" || name == "queue") CHECK(contains(names[parents[uuid]], "node, pid 7"));
  }
  CHECK(places["main 10"] < places["worker 11 (loop)"]);
  CHECK(places["worker 11 (loop)"] < places["worker 12 (pool)"]);
  CHECK(places["worker 12 (pool)"] < places["queue"]);
  REQUIRE(leaving.size() == 2);  // one from stage to stage, and one to the step
  CHECK(std::set<std::int64_t>(leaving.begin(), leaving.end()) ==
        std::set<std::int64_t>(arriving.begin(), arriving.end()));
}

TEST_CASE("names of any bytes are text in a Perfetto trace") {
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_1", "SA%FF%0A,5,2\n");
  const std::string trace = dir.path() + "/t.pftrace";
  REQUIRE(run({"viz", dir.path(), "-o", trace, "--format", "perfetto"}).status == 0);
  if (!can_decode()) return;
  const std::string text = decoded(dir, trace);
  CHECK(contains(text, R"(name: "A%FF\n")"));
  CHECK(contains(text, "timestamp: 5\n"));
  CHECK(contains(text, "timestamp: 7\n"));
}

TEST_CASE("every format can be compressed") {
  const temp_dir dir;
  for (const std::string format : {"chrome", "perfetto"}) {
    const std::string plain = dir.path() + "/plain";
    const std::string packed = dir.path() + "/packed.gz";
    const std::vector<std::string> call{"viz", traces() + "/quirks/good", "--format", format, "-o"};
    std::vector<std::string> with = call;
    with.push_back(plain);
    REQUIRE(run(with).status == 0);
    with.back() = packed;
    with.emplace_back("--gzip");
    REQUIRE(run(with).status == 0);
    const std::string command = "gzip -dc '" + packed + "' | cmp - '" + plain + "'";
    CHECK(std::system(command.c_str()) == 0);
  }
}

TEST_CASE("--compat and --torch-trace require Chrome's format") {
  for (const std::string other : {"--compat", "--torch-trace=x.json"}) {
    CHECK(
        run({"viz", traces() + "/quirks/good", "-o", "-", "--format", "perfetto", other}).status ==
        2);
  }
}
