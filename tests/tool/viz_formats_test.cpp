// viz in Perfetto's and speedscope's formats.
#include <cstdint>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "tool_test.hpp"

using namespace lotus::tool_test;

namespace {

/// protoc's text form of a trace; empty when there is no protoc.
std::string decoded(const temp_dir& dir, const std::string& trace) {
  const std::string protoc = LOTUS_PROTOC;
  if (protoc.empty()) return "";
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

/// The packets of the decoded text, each as one string.
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

TEST_CASE("a Perfetto trace decodes, and its slices begin and end in order") {
  const temp_dir dir;
  const std::string trace = dir.path() + "/t.pftrace";
  REQUIRE(run({"viz", traces() + "/c_ooo_w4", "-o", trace, "--format", "perfetto"}).status == 0);
  const std::string text = decoded(dir, trace);
  if (text.empty()) {
    WARN("protoc is absent; nothing decoded");
    return;
  }
  // 3,675 operations, 75 preprocessings, 31 waits, 75 steps; 44 arrivals out of order.
  CHECK(count(text, "TYPE_SLICE_BEGIN") == 3675 + 75 + 31 + 75);
  CHECK(count(text, "TYPE_SLICE_END") == count(text, "TYPE_SLICE_BEGIN"));
  CHECK(count(text, "TYPE_INSTANT") == 44);
  CHECK(count(text, " flow_ids:") == 75);
  CHECK(count(text, "terminating_flow_ids:") == 75);
  CHECK(count(text, "process_name: \"b8_gpu4\"") == 1);
  CHECK(count(text, "thread_name:") == 5);
  CHECK(count(text, "name: \"batches ready\"") == 1);
  CHECK(count(text, "event_names {") == 7);  // each operation's name once
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

TEST_CASE("names of any bytes decode as text") {
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_1", "SA%FF%0A,5,2\n");
  const std::string trace = dir.path() + "/t.pftrace";
  REQUIRE(run({"viz", dir.path(), "-o", trace, "--format", "perfetto"}).status == 0);
  const std::string text = decoded(dir, trace);
  if (text.empty()) return;
  CHECK(contains(text, R"(name: "SA%FF\n")"));
  CHECK(contains(text, "timestamp: 5\n"));
  CHECK(contains(text, "timestamp: 7\n"));
}

TEST_CASE("a speedscope profile is balanced, in order, and its frames add up") {
  const result r = run({"viz", traces() + "/c_ooo_w4", "-o", "-", "--format", "speedscope"});
  REQUIRE(r.status == 0);
  const auto document = parse_json(r.out);
  const auto& frames = document["shared"]["frames"];
  CHECK(std::string(document["$schema"].GetString()) ==
        "https://www.speedscope.app/file-format-schema.json");
  CHECK(frames.Size() == 7 + 3);  // operations; preprocessing, wait, step without numbers
  REQUIRE(document["profiles"].Size() == 5);
  std::map<std::string, std::int64_t> totals;
  for (const auto& profile : document["profiles"].GetArray()) {
    CHECK(std::string(profile["type"].GetString()) == "evented");
    CHECK(std::string(profile["unit"].GetString()) == "nanoseconds");
    std::int64_t last = profile["startValue"].GetInt64();
    std::vector<std::pair<std::int64_t, std::int64_t>> open;
    for (const auto& event : profile["events"].GetArray()) {
      const std::int64_t at = event["at"].GetInt64();
      const std::int64_t frame = event["frame"].GetInt64();
      REQUIRE(at >= last);
      last = at;
      if (std::string(event["type"].GetString()) == "O") {
        open.emplace_back(frame, at);
      } else {
        REQUIRE_FALSE(open.empty());
        REQUIRE(open.back().first == frame);
        totals[frames[static_cast<rapidjson::SizeType>(frame)]["name"].GetString()] +=
            at - open.back().second;
        open.pop_back();
      }
    }
    CHECK(open.empty());
    CHECK(profile["endValue"].GetInt64() == last);
  }
  const auto reference =
      parse_json(read_file(traces() + "/c_ooo_w4/expected/reference_b8_gpu4.json"));
  CHECK(totals["SLoader"] == reference["ops"]["SLoader"]["total_ns"].GetInt64());
  CHECK(totals["SToTensor"] == reference["ops"]["SToTensor"]["total_ns"].GetInt64());
}

TEST_CASE("every format can be compressed") {
  const temp_dir dir;
  for (const std::string format : {"chrome", "perfetto", "speedscope"}) {
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

TEST_CASE("compat and a profiler trace go with Chrome's format only") {
  for (const std::string other : {"--compat", "--torch-trace=x.json"}) {
    CHECK(
        run({"viz", traces() + "/quirks/good", "-o", "-", "--format", "perfetto", other}).status ==
        2);
  }
}
