// Catch2 v2 (Debian 12) and v3 keep their macros in different headers.
#ifndef LOTUS_TESTS_CATCH_HPP
#define LOTUS_TESTS_CATCH_HPP

#if __has_include(<catch2/catch_all.hpp>)
  #include <catch2/catch_all.hpp>
using Catch::Approx;
#else
  #include <catch2/catch.hpp>
#endif

#endif  // LOTUS_TESTS_CATCH_HPP
