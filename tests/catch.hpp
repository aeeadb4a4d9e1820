// Catch2 v2 (Debian 12) and v3 keep their macros in different headers, and only v3 can skip.
#ifndef LOTUS_TESTS_CATCH_HPP
#define LOTUS_TESTS_CATCH_HPP

// clang 22 warns of __COUNTER__ in each TEST_CASE; __LINE__ tells them apart as well.
#define CATCH_CONFIG_NO_COUNTER

#if __has_include(<catch2/catch_all.hpp>)
  #include <catch2/catch_all.hpp>
using Catch::Approx;
#else
  #include <catch2/catch.hpp>
#endif

#include <string>

namespace lotus_test {

/// Says what this machine lacks for the rest of a test case, which the caller then leaves out. The
/// program is reported as skipped, unless something failed.
void skip(const std::string& why);

}  // namespace lotus_test

#endif  // LOTUS_TESTS_CATCH_HPP
