// Tests that files of earlier versions are still read: their logs must give the same numbers, and
// JSON outputs must still have every key.
#include <filesystem>
#include <string>
#include <vector>

#include "catch.hpp"
#include "tool/json.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> versions() {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(LOTUS_TEST_SAMPLES)) {
    if (entry.is_directory()) found.push_back(entry.path().string());
  }
  return found;
}

/// Returns whether the value of `key` may differ between versions of the tool: the value is a text
/// for people, or the path of the folder.
bool may_change(const std::string& key) {
  return key == "dir" || key == "screen" || key == "sentence" || key == "text" || key == "why" ||
         key == "title" || key == "throughput" || key == "assumptions" || key == "before" ||
         key == "after";
}

bool same_type(const json& a, const json& b) {
  return a.is_object() == b.is_object() && a.is_array() == b.is_array() &&
         a.is_text() == b.is_text() && a.is_number() == b.is_number();
}

/// Checks that every key of `then`, the output of an earlier version, is in `now`. The type of a
/// value may have changed only from or to null.
void check_keys(const json& then, const json& now, const std::string& place) {
  INFO(place);
  if (then.is_null() || now.is_null()) return;
  REQUIRE(same_type(then, now));
  if (then.is_array() && then.size() > 0) {
    REQUIRE(now.size() > 0);
    check_keys(then[0], now[0], place + "[0]");
  }
  if (!then.is_object()) return;
  for (const json::member& m : then.members()) {
    INFO(m.name);
    REQUIRE(now.has(m.name));
    // The settings of a suggestion may differ, because another version may suggest something else.
    if (m.name != "change") check_keys(m.value, now[m.name], place + '.' + m.name);
  }
}

/// Checks that `now` contains every value of `then`, the output of an earlier version. Values that
/// may_change() permits to differ are not compared.
void check_values(const json& then, const json& now, const std::string& place) {
  INFO(place);
  if (then.is_object()) {
    for (const json::member& m : then.members()) {
      if (may_change(m.name)) continue;
      INFO(m.name);
      REQUIRE(now.has(m.name));
      check_values(m.value, now[m.name], place + '.' + m.name);
    }
  } else if (then.is_array()) {
    REQUIRE(then.size() == now.size());
    for (std::size_t i = 0; i < then.size(); ++i) {
      check_values(then[i], now[i], place + '[' + std::to_string(i) + ']');
    }
  } else if (then.is_number()) {
    REQUIRE(now.is_number());
    CHECK(now.number() == Approx(then.number()).epsilon(1e-9));
  } else {
    CHECK(now.canonical() == then.canonical());
  }
}

json printed(const std::vector<std::string>& arguments) {
  return parse_json(run_well(arguments).out);
}

}  // namespace

TEST_CASE("samples: the figures of logs of earlier versions are unchanged") {
  REQUIRE(!versions().empty());
  for (const std::string& version : versions()) {
    for (const std::string name : {"text", "compact"}) {
      const std::string folder = version + '/' + name;
      const json then = parse_json(read_file(folder + ".stats.json"));
      const json now = printed({"stats", folder, "--json", "--strict"});
      check_values(then, now, folder);
      // The numbers of calls must be exactly those that recorder.cpp recorded. This also shows that
      // the sample run is not empty.
      const json& of = now["runs"][0];
      CHECK(of["ops"]["SRead"]["count"].integer() == 24);
      CHECK(of["aggregated"]["SToken"]["count"].integer() == 2400);
      CHECK(of["stages"].has("Decode"));
      CHECK(of["preprocess"]["count"].integer() == 12);
      CHECK(of["counters"]["built"]["max"].number() == 11);
    }
  }
}

TEST_CASE("samples: JSON outputs have all keys of earlier versions") {
  for (const std::string& version : versions()) {
    for (const std::string name : {"text", "compact"}) {
      for (const std::string command : {"stats", "diagnose", "whatif"}) {
        const std::string file = version + '/' + name + '.' + command + ".json";
        check_keys(parse_json(read_file(file)), printed({command, version + '/' + name, "--json"}),
                   file);
      }
    }
    check_keys(parse_json(read_file(version + "/compare.json")),
               printed({"compare", version + "/text", version + "/compact", "--json"}),
               version + "/compare.json");
  }
}
