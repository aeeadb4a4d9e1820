// Shows on a terminal how far a command has progressed.
#ifndef LOTUS_TOOL_BASE_TERMINAL_PROGRESS_HPP
#define LOTUS_TOOL_BASE_TERMINAL_PROGRESS_HPP

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace lotus::tool {

/// expect_bytes() adds to the number of input bytes that a command will read, count_bytes() to the
/// number of those that it has read. The progress bar shows both numbers. They are global, so that
/// the code that reads files need not get them as arguments. Both functions are thread-safe, and
/// cheap even without a progress bar.
void expect_bytes(std::uint64_t bytes) noexcept;
void count_bytes(std::uint64_t bytes) noexcept;

/// Shows a progress bar on a terminal. The bar appears only after the object has existed for the
/// time `wait`, so that quick commands show no bar. The destructor removes the bar. Only one
/// progress_bar may exist at a time.
class progress_bar {
 public:
  using duration = std::chrono::milliseconds;

  /// @param descriptor  the descriptor of the terminal; if it is negative, nothing is drawn.
  explicit progress_bar(int descriptor, duration wait = duration(1000),
                        duration between = duration(100));
  progress_bar(const progress_bar&) = delete;
  progress_bar& operator=(const progress_bar&) = delete;
  ~progress_bar();

 private:
  void draw_until_stopped();
  void draw(const std::string& text) const;

  int descriptor_;
  duration wait_;
  duration between_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;  // guarded by mutex_
  std::thread thread_;
};

/// Returns the line of the progress bar, such as "[#####.....]  52 %  210 of 400 MB".
std::string progress_text(std::uint64_t done, std::uint64_t expected);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_TERMINAL_PROGRESS_HPP
