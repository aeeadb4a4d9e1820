// Spreads independent work over all CPUs.
#ifndef LOTUS_TOOL_BASE_PARALLEL_HPP
#define LOTUS_TOOL_BASE_PARALLEL_HPP

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace lotus::tool {

/// For for_each_in_parallel(): as many threads as there are CPUs.
inline constexpr std::size_t unlimited_threads = SIZE_MAX;

/// Calls `work(index)` once for each index below `count`, in no particular order, on at most
/// `max_threads` threads and not on more than there are CPUs. One of the threads is the caller's.
/// Rethrows one of the exceptions that `work` throws; then some indices may be left out.
template <class Work>
void for_each_in_parallel(std::size_t count, std::size_t max_threads, Work&& work) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work_on = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      next = count;
      const std::lock_guard<std::mutex> lock(mutex);
      failure = std::current_exception();
    }
  };
  const auto threads =
      std::min<std::size_t>({max_threads, count, std::thread::hardware_concurrency()});
  std::vector<std::thread> others;
  try {
    for (std::size_t t = 1; t < threads; ++t) others.emplace_back(work_on);
  } catch (const std::system_error&) {
    // No further thread could be created. The threads that exist do all the work.
  }
  work_on();
  for (std::thread& other : others) other.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_PARALLEL_HPP
