// The main function of every test program. The exit status is 77, which ctest reports as skipped,
// if a test case was skipped and none failed.
#define CATCH_CONFIG_RUNNER
#include <atomic>
#include <string>

#include "catch.hpp"

namespace {
std::atomic<bool> any_skipped{false};
}  // namespace

void lotus_test::skip(const std::string& why) {
  any_skipped = true;
  WARN("skipped: " << why);
}

int main(int argc, char** argv) {
  const int failed = Catch::Session().run(argc, argv);
  constexpr int skipped = 77;
  return failed == 0 && any_skipped ? skipped : failed;
}
