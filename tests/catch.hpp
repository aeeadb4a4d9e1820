// Includes Catch2 v2 (Debian 12) or v3 (Debian 13), which keep their macros in different headers
// and their matchers under different names, and adds skip(), because only v3 can skip a test case.
#ifndef LOTUS_TESTS_CATCH_HPP
#define LOTUS_TESTS_CATCH_HPP

// clang 22 warns about __COUNTER__, which Catch uses in TEST_CASE by default. With this macro,
// Catch uses __LINE__ instead.
#if defined(__clang__)
  #define CATCH_CONFIG_NO_COUNTER
#endif

#include <string>

#if __has_include(<catch2/catch_all.hpp>)
  #include <catch2/catch_all.hpp>
using Catch::Approx;
namespace Catch {
using Matchers::StartsWith;
inline auto Contains(const std::string& part) {
  return Matchers::ContainsSubstring(part);
}
}  // namespace Catch
#else
  #include <catch2/catch.hpp>
#endif

namespace lotus_test {

/// Reports that this machine lacks something that the test case needs; the test case must then
/// return. The whole program is reported as skipped, unless one of its checks fails.
void skip(const std::string& why);

}  // namespace lotus_test

#endif  // LOTUS_TESTS_CATCH_HPP
