// What the fuzzers share.
#ifndef LOTUS_TESTS_FUZZ_HPP
#define LOTUS_TESTS_FUZZ_HPP

#include <cstddef>
#include <cstdint>
#include <cstdlib>

/// One input; libFuzzer's entry, and that of the program that repeats known inputs.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

/// Ends the program when something does not hold: that is what a fuzzer sees.
inline void require(bool holds) {
  if (!holds) std::abort();
}

#endif  // LOTUS_TESTS_FUZZ_HPP
