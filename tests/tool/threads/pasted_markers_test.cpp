// Pastes the markers that `threads` suggests into programs without any, builds and records these,
// and looks whether they get a verdict that agrees with what was seen without markers.
#include <cstddef>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "sampled_program.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

const std::string sources = LOTUS_SOURCE;

/// Builds and records a program. Returns what `lotus-tool run` printed.
std::string build_and_record(const temp_dir& dir, const std::string& name, const std::string& text,
                             const std::string& to) {
  const bool is_c = name.back() == 'c';
  dir.file(name, text);
  const std::string options = " -O1 -g -pthread -I'" + sources + "/include' ";
  std::string build = "cd '" + dir.path() + "' && '" + LOTUS_CXX + "'" + options;
  if (is_c) {
    const bool is_marked = contains(text, "lotus");
    dir.file("lotus.cpp", is_marked ? "#define LOTUS_IMPLEMENTATION\n#include <lotus/lotus.hpp>\n"
                                    : "int only_the_c_file_does_something;\n");
    build += "-std=c99 -Wall -Werror -x c -c " + name + " -o main.o && '" + LOTUS_CXX + "'" +
             options + "-std=c++17 lotus.cpp main.o -o " + to;
  } else {
    build += "-std=c++17 -Wall -Werror " + name + " -o " + to;
  }
  INFO(text);
  REQUIRE(std::system(build.c_str()) == 0);
  const std::string out = dir.path() + "/out";
  const std::vector<std::string> command{LOTUS_TOOL_PROGRAM,        "run", "--dir",
                                         dir.path() + "/run_" + to, "--",  dir.path() + "/" + to};
  CHECK(running_program(command, out).wait() == 0);
  return read_file(out + ".err");
}

/// Returns the text with a line for each marker, and with the header that they need.
std::string pasted(const std::string& text, const std::vector<json>& markers) {
  std::string result = "#include <" + markers.front()["header"].text() + ">\n";
  const auto add = [&](int number, const char* place) {
    for (const json& marker : markers) {
      if (marker["line"].integer() == number && marker["place"].text() == place) {
        result += marker["text"].text() + '\n';
      }
    }
  };
  std::istringstream lines(text);
  int number = 1;
  for (std::string line; std::getline(lines, line); ++number) {
    add(number, "before");
    result += line + '\n';
    add(number, "after");
  }
  return result;
}

}  // namespace

TEST_CASE("suggested markers compile where they belong, and lead to a verdict") {
  for (const std::string name : {"queue.cpp", "queue.c"}) {
#ifdef LOTUS_TEST_BRIEFLY
    if (name == "queue.c") break;  // building the programs takes longest
#endif
    INFO(name);
    const temp_dir dir;
    const std::string text = read_file(sources + "/tests/tool/threads/unmarked/" + name);
    const std::string seen = build_and_record(dir, name, text, "unmarked");
    INFO(seen);
    const result printed = run({"threads", dir.path() + "/run_unmarked", "--json"});
    const json threads = parse_json(printed.out);
    if (threads["sampling"]["cpu_interval_ns"].integer() == 0) {
      lotus_test::skip("the kernel does not permit perf events");
      return;
    }
    CHECK(contains(threads["headline"].text(), "2 threads in `worker_loop`"));
    const std::vector<json> markers = threads["suggested_markers"].array();
    REQUIRE(markers.size() == (name == "queue.c" ? 4 : 3));
    CHECK(contains(seen, name == "queue.c" ? "lotus/lotus.h" : "lotus/lotus.hpp"));
    build_and_record(dir, name, pasted(text, markers), "marked");
    const result diagnosed = run({"diagnose", dir.path() + "/run_marked", "--json"});
    INFO(diagnosed.out + diagnosed.err);
    REQUIRE(diagnosed.status == 0);
    const json found = parse_json(diagnosed.out);
    CHECK(found["batches"].integer() == 160);
    REQUIRE(found["verdict"].is_text());
    CHECK(found["verdict"].text() != "consumer-bound");
  }
}
