// Tests that calls are found that a compiler inlined into a lambda whose rarely used code it moved
// elsewhere, as optimizing compilers do if the lambda throws.
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "catch.hpp"
#include "sampling/read/symbols.hpp"
#include "support.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

constexpr const char* program = R"(#include <ctime>
#include <stdexcept>

inline void short_pause(long ns) {
  timespec t{0, ns};
  nanosleep(&t, nullptr);
}

int poll_all(int times) {
  auto poll = [times](int x) __attribute__((noinline)) {
    for (int i = 0; i < times; ++i) short_pause(x);
    if (x > 9) throw std::runtime_error("too long");
    return x;
  };
  return poll(times) + poll(times + 1);
}
)";

}  // namespace

TEST_CASE("inlined calls are found in a lambda that a compiler split") {
  const temp_dir dir;
  dir.file("split.cpp", program);
  const std::string library = dir.path() + "/split.so";
  REQUIRE(std::system(("cd '" + dir.path() +
                       "' && '" LOTUS_CXX "' -std=c++17 -O2 -g -fPIC -shared split.cpp -o split.so")
                          .c_str()) == 0);
  std::ostringstream said;
  lotus::tool::diagnostic_log diagnostics(said, false);
  lotus::tool::symbol_source symbols(diagnostics);
  constexpr std::uint64_t end_of_code = 0x4000;
  int found = 0;
  for (std::uint64_t offset = 0x1000; offset < end_of_code; ++offset) {
    const std::vector<lotus::tool::source_frame> frames = symbols.frames_at(library, offset, "");
    if (frames.size() < 2 || !contains(frames.front().function, "short_pause")) continue;
    ++found;
    CHECK(contains(frames.back().function, "poll_all"));
    CHECK(frames.back().line == 11);
  }
  CHECK(found > 0);
}
