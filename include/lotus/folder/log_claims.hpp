// Finds out whether a log belongs to another process, if several processes write to one directory.
//
// Logs are named by thread ids, and the same ids occur in every container. So before a process
// creates the log of a thread, it writes the thread id into its information file, together with the
// PID namespace. Other processes that find the id there choose another number.
#ifndef LOTUS_FOLDER_LOG_CLAIMS_HPP
#define LOTUS_FOLDER_LOG_CLAIMS_HPP

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "lotus/base/clock.hpp"
#include "lotus/base/file.hpp"
#include "lotus/base/function_ref.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/directory.hpp"
#include "lotus/folder/hidden_files.hpp"
#include "lotus/folder/safe_open.hpp"
#include "lotus/record/ring_layout.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Maximum thread id: PID_MAX_LIMIT of Linux.
inline constexpr std::uint32_t largest_thread_id = 4'194'304;

/// Returns a log number for a thread whose id is already used by another process's log. Each call
/// returns another number.
inline std::uint32_t number_of_no_thread(std::uint32_t tid) noexcept {
  std::uint64_t mixed = static_cast<std::uint64_t>(clock_ns(CLOCK_REALTIME)) ^
                        (std::uint64_t{tid} << 32) ^ (static_cast<std::uint64_t>(getpid()) << 44);
  mixed = (mixed ^ (mixed >> 31)) * 0x9e3779b97f4a7c15U;
  // The number stays below 2^31, because some readers store it in a signed 32-bit variable.
  return largest_thread_id + 1 + static_cast<std::uint32_t>((mixed >> 32) % 2'000'000'000U);
}

/// Limits how many bytes of information files are read to decide whether one log number is in use.
/// The limit is high enough for thousands of processes, and low enough to protect against huge
/// files of other users. Each file counts as at least one page.
class claim_budget {
 public:
  bool spent() const noexcept { return bytes_ == 0; }
  void take(std::size_t bytes) noexcept { bytes_ -= bytes < bytes_ ? bytes : bytes_; }

 private:
  /// Bytes that may still be read; enough for 600,000 threads or 4,096 files.
  std::size_t bytes_ = std::size_t{16} << 20;
};

/// Reads the lines of an information file, which store/run/run_info.hpp writes.
class claim_file {
 public:
  /// @param name  a file in `directory` (borrowed); treated as empty if it cannot be read.
  claim_file(int directory, const char* name) noexcept {
    struct stat status {};
    fd_ = open_regular(directory, name, O_RDONLY, status);
  }
  claim_file(const claim_file&) = delete;
  claim_file& operator=(const claim_file&) = delete;
  ~claim_file() {
    if (fd_ >= 0) close(fd_);
  }

  /// Calls each(std::string_view) for every line, until `each` returns false or the budget is
  /// spent.
  LOTUS_DETAIL_COLD void for_each_line(claim_budget& budget,
                                       function_ref<bool(std::string_view)> each) const noexcept {
    const mapped<char[min_page_bytes]> memory;
    if (!memory) return;
    auto& text = *memory;
    std::size_t held = 0;
    std::size_t total = 0;
    while (fd_ >= 0 && !budget.spent()) {
      const ssize_t got = read(fd_, text + held, sizeof(text) - held);
      if (got < 0 && errno == EINTR) continue;
      if (got > 0) {
        budget.take(static_cast<std::size_t>(got));
        total += static_cast<std::size_t>(got);
        held += static_cast<std::size_t>(got);
      }
      std::size_t from = 0;
      bool wanted = got > 0;
      while (const void* end = wanted ? std::memchr(text + from, '\n', held - from) : nullptr) {
        const auto behind = static_cast<std::size_t>(static_cast<const char*>(end) - text);
        wanted = each(std::string_view{text + from, behind - from});
        from = behind + 1;
      }
      if (!wanted) break;
      // A line that does not fit in `text` is skipped, because the library does not write such long
      // lines.
      if (from == 0 && held == sizeof(text)) from = held;
      std::memmove(text, text + from, held - from);
      held -= from;
    }
    if (total < min_page_bytes) budget.take(min_page_bytes - total);
  }

 private:
  int fd_ = -1;
};

/// Removes `key`, which ends in a space, from the beginning of a line. Returns false if the line
/// does not begin with `key`.
inline bool take_key(std::string_view& line, std::string_view key) noexcept {
  if (line.substr(0, key.size()) != key) return false;
  line.remove_prefix(key.size());
  return true;
}

/// Whether a process of another PID namespace or machine may be writing logs with this number in
/// their names. Also returns true if the information files are too large to check all of them.
/// @param info  information file of the calling process; if it contains no namespace, all other
/// processes count as foreign.
inline bool log_number_is_anothers(int directory, const char* info, std::uint32_t number) noexcept {
  char own[96] = {};
  claim_budget budget;
  claim_file{directory, info}.for_each_line(budget, [&](std::string_view line) {
    const bool found = take_key(line, "namespace ") && line.size() < sizeof(own);
    if (found) std::memcpy(own, line.data(), line.size());
    return !found;
  });
  char digits[16];
  std::snprintf(digits, sizeof(digits), "%u ", number);
  bool taken = false;
  for_each_entry(directory, [&](const char* name) {
    constexpr std::size_t start = sizeof(run_info_start) - 1;
    if (taken || std::strncmp(name, run_info_start, start) != 0) return;
    if (std::strcmp(name, info) == 0) return;
    bool unknown = true;
    bool claims = false;
    claim_file{directory, name}.for_each_line(budget, [&](std::string_view line) {
      if (take_key(line, "namespace ")) {
        unknown = own[0] == '\0' || line != own;
      } else if (take_key(line, "thread ") || take_key(line, "log ")) {
        claims = claims || take_key(line, digits);
      }
      return unknown && !claims;
    });
    taken = (unknown && claims) || budget.spent();
  });
  return taken;
}

/// Adds to the information file that the logs of thread `tid` have this number. Ignores failures.
inline void report_log_number(int directory, const char* info, const file_owners& owners,
                              std::uint32_t number, std::uint32_t tid) noexcept {
  struct stat status {};
  const int fd = open_own(directory, info, O_WRONLY | O_APPEND, owners, status);
  if (fd < 0) return;
  char text[64];
  const int bytes = std::snprintf(text, sizeof(text), "log %u %u\n", number, tid);
  static_cast<void>(write_all(fd, text, static_cast<std::size_t>(bytes)));
  close(fd);
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_FOLDER_LOG_CLAIMS_HPP
