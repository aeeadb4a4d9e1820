#include "tool/tool_test.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "catch.hpp"
#include "cli/cli.hpp"

namespace lotus::tool_test {

namespace fs = std::filesystem;

std::string traces() {
  return LOTUS_TEST_TRACES;
}

std::string shared_traces() {
  std::error_code ignored;
  return fs::is_directory(LOTUS_SHARED_TRACES, ignored) ? LOTUS_SHARED_TRACES : "";
}

temp_dir::temp_dir() : path_((fs::temp_directory_path() / "lotus-tool-test-XXXXXX").string()) {
  if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no temporary directory");
}

temp_dir::~temp_dir() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string temp_dir::file(const std::string& name, std::string_view text) const {
  const fs::path path = fs::path(path_) / name;
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
  return path.string();
}

std::vector<std::string> temp_dir::names() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path_)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

namespace {

/// If the variable LOTUS_TEST_JSON_TO is set, stores a JSON output in this folder. The test
/// tool_schema later validates all outputs that the other tests have stored.
void keep_json(const std::vector<std::string>& arguments, const std::string& out) {
  const char* const folder = std::getenv("LOTUS_TEST_JSON_TO");
  const auto at = std::find(arguments.begin(), arguments.end(), "--json");
  if (folder == nullptr || at == arguments.end() || out.empty()) return;
  static int n = 0;
  std::string command = arguments.front();
  if (command == "map") command += ' ' + arguments.at(1);
  std::ofstream(fs::path(folder) /
                (command + '.' + std::to_string(::getpid()) + '.' + std::to_string(++n) + ".json"))
      << out;
}

}  // namespace

result run(const std::vector<std::string>& arguments) {
  std::vector<const char*> argv{"lotus-tool"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  std::ostringstream out;
  std::ostringstream err;
  const int status = tool::run_cli(static_cast<int>(argv.size()), argv.data(), out, err);
  keep_json(arguments, out.str());
  return {status, out.str(), err.str()};
}

result run_well(const std::vector<std::string>& arguments) {
  result r = run(arguments);
  INFO(r.out << r.err);
  REQUIRE(r.status == 0);
  return r;
}

json parse_json(const std::string& text) {
  return json::parse(text);
}

std::vector<std::string> sorted_events(const std::string& text) {
  std::vector<std::string> events;
  for (const json& event : parse_json(text)["traceEvents"].array()) {
    events.push_back(event.canonical());
  }
  std::sort(events.begin(), events.end());
  return events;
}

}  // namespace lotus::tool_test
