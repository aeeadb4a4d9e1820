// Declares the functions that all fuzzers have in common.
#ifndef LOTUS_TESTS_FUZZ_HPP
#define LOTUS_TESTS_FUZZ_HPP

#include <cstddef>
#include <cstdint>
#include <cstdlib>

/// Processes one input. Both libFuzzer and repeat.cpp, which runs the inputs of a corpus without
/// libFuzzer, call this function.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

/// Aborts if a condition is false, because a fuzzer notices only crashes.
inline void require(bool holds) {
  if (!holds) std::abort();
}

#endif  // LOTUS_TESTS_FUZZ_HPP
