// Catch2 v2 (Debian 12) and v3 keep their macros in different headers, and only v3 can skip.
#ifndef LOTUS_TESTS_CATCH_HPP
#define LOTUS_TESTS_CATCH_HPP

// clang 22 warns about __COUNTER__ in each TEST_CASE; __LINE__ gives unique names as well.
#define CATCH_CONFIG_NO_COUNTER

#if __has_include(<catch2/catch_all.hpp>)
  #include <catch2/catch_all.hpp>
using Catch::Approx;
#else
  #include <catch2/catch.hpp>
#endif

#include <string>

namespace lotus_test {

/// Reports that this machine lacks something that the rest of the test case needs; the caller then
/// returns. The program is reported as skipped, unless something failed.
void skip(const std::string& why);

}  // namespace lotus_test

#endif  // LOTUS_TESTS_CATCH_HPP
