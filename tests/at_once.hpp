// Runs what mostly sleeps, such as recordings of programs, at the same time.
#ifndef LOTUS_TESTS_AT_ONCE_HPP
#define LOTUS_TESTS_AT_ONCE_HPP

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace lotus_test {

/// Calls what(0) to what(count - 1), at most `most` of them at the same time, and waits for all.
/// `what` must not throw, nor use the macros of Catch2, which only one thread may.
template <class What>
void at_once(std::size_t count, std::size_t most, const What& what) {
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < most && t < count; ++t) {
    threads.emplace_back([&] {
      for (std::size_t i = next++; i < count; i = next++) what(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace lotus_test

#endif  // LOTUS_TESTS_AT_ONCE_HPP
