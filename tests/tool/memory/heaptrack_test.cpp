// Compares the totals of lotus-tool run --memory with those of heaptrack, which logs every
// allocation.

#include <sys/wait.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "catch.hpp"
#include "counted_run.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

struct totals {
  double bytes = 0;
  double calls = 0;
};

bool has_heaptrack() {
  return std::system("command -v heaptrack zstdcat >/dev/null 2>&1") == 0;
}

/// Returns the totals from heaptrack's log, because the sums that heaptrack prints are rounded. In
/// the log, "a SIZE TRACE" defines a kind of allocation and "+ KIND" is an allocation of a kind.
/// All numbers are hexadecimal.
totals heaptrack_of(const std::string& program, const std::string& arguments) {
  const temp_dir dir;
  const std::string command = "cd '" + dir.path() + "' && timeout 250 heaptrack -o track '" +
                              program + "' " + arguments +
                              " >out 2>&1 && zstdcat track.zst | grep '^[a+] ' >lines";
  REQUIRE(std::system(command.c_str()) == 0);
  totals sum;
  std::vector<double> sizes;
  std::FILE* const lines = std::fopen((dir.path() + "/lines").c_str(), "r");
  REQUIRE(lines != nullptr);
  char line[256];
  while (std::fgets(line, sizeof(line), lines) != nullptr) {
    const std::uint64_t number = std::strtoull(line + 2, nullptr, 16);
    if (line[0] == 'a') {
      sizes.push_back(static_cast<double>(number));
    } else {
      REQUIRE(number < sizes.size());
      sum.bytes += sizes[number];
      ++sum.calls;
    }
  }
  std::fclose(lines);
  return sum;
}

void compare(const std::string& program, const std::string& arguments) {
  if (!has_heaptrack()) return lotus_test::skip("heaptrack is not installed");
  const totals theirs = heaptrack_of(program, arguments);
  const counted_run run(program, arguments);
  const json memory = run.memory();
  const totals ours{memory["allocated_bytes"].number(), memory["allocations"].number()};
  std::printf("%s: %.0f bytes in %.0f calls, heaptrack %.0f in %.0f\n", program.c_str(), ours.bytes,
              ours.calls, theirs.bytes, theirs.calls);
  CHECK(std::abs(ours.bytes - theirs.bytes) <= 0.001 * theirs.bytes);
  CHECK(std::abs(ours.calls - theirs.calls) <= 0.001 * theirs.calls);
}

}  // namespace

TEST_CASE("totals for random allocations on four threads match heaptrack to 0.1 %") {
  compare(MEMORY_PROGRAM, "random 20000");
}

#ifdef IMAGENET_PROGRAM
TEST_CASE("totals for the ImageNet example match heaptrack to 0.1 %") {
  // Lotus counts only until the recording stops, which is before the program's end.
  compare(IMAGENET_PROGRAM, "--count 600 --workers 2 --step-ms 0");
}
#endif

#ifdef TORCH_PROGRAM
TEST_CASE("totals for the libtorch example match heaptrack to 0.1 %") {
  compare(TORCH_PROGRAM, "--epochs 2 --workers 2 --count 40 --size 64 --batch-size 8");
}
#endif
