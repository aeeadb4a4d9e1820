// The main function of every test program. The exit status is 77, which ctest reports as skipped,
// if a test case was skipped and none failed. It is not 0 if no test case was chosen.
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
  Catch::Session session;
#if CATCH_VERSION_MAJOR < 3  // by default in later versions
  session.configData().warnings = Catch::WarnAbout::NoTests;
#endif
  const int failed = session.run(argc, argv);
  constexpr int skipped = 77;
  return failed == 0 && any_skipped ? skipped : failed;
}
