#include "base/terminal/progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>

namespace lotus::tool {
namespace {

std::atomic<std::uint64_t> expected_bytes{0};
std::atomic<std::uint64_t> done_bytes{0};

}  // namespace

void expect_bytes(std::uint64_t bytes) noexcept {
  expected_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void count_bytes(std::uint64_t bytes) noexcept {
  done_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

std::string progress_text(std::uint64_t done, std::uint64_t expected) {
  constexpr std::uint64_t width = 30;
  constexpr std::uint64_t mb = 1'000'000;
  // A command that reads a file twice may read more bytes than expected, so limit the share to 1.
  const double share =
      expected == 0 ? 0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(expected));
  const auto full = static_cast<std::size_t>(share * width);
  const auto percent = static_cast<int>(share * 100);
  return '[' + std::string(full, '#') + std::string(width - full, '.') + "] " +
         std::string(percent < 10    ? 2
                     : percent < 100 ? 1
                                     : 0,
                     ' ') +
         std::to_string(percent) + " %  " + std::to_string(done / mb) + " of " +
         std::to_string(std::max(done, expected) / mb) + " MB";
}

progress_bar::progress_bar(int descriptor, duration wait, duration between)
    : descriptor_(descriptor), wait_(wait), between_(between) {
  expected_bytes = 0;
  done_bytes = 0;
  if (descriptor_ >= 0) thread_ = std::thread(&progress_bar::draw_until_stopped, this);
}

progress_bar::~progress_bar() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void progress_bar::draw(const std::string& text) const {
  // "\r" moves the cursor to the beginning of the line; the escape sequence after the text clears
  // the line behind it. Errors of write() are ignored, because only the progress bar is affected.
  const std::string line = '\r' + text + "\x1b[K";
  [[maybe_unused]] const auto ignored = ::write(descriptor_, line.data(), line.size());
}

void progress_bar::draw_until_stopped() {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto stopped = [this] { return stopping_; };
  if (changed_.wait_for(lock, wait_, stopped)) return;
  bool drawn = false;
  do {
    // A command that has read everything, and waits for a program or computes, shows nothing.
    if (done_bytes >= expected_bytes) {
      if (drawn) draw("");
      drawn = false;
      continue;
    }
    draw(progress_text(done_bytes, expected_bytes));
    drawn = true;
  } while (!changed_.wait_for(lock, between_, stopped));
  if (drawn) draw("");
}

}  // namespace lotus::tool
