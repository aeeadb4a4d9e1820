// Reads the files in which processes recorded what their threads waited for.
#ifndef LOTUS_TOOL_WAITS_DATA_WAIT_FILES_HPP
#define LOTUS_TOOL_WAITS_DATA_WAIT_FILES_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.hpp"
#include "log/folder/log_files.hpp"
#include "lotus/waits/wait_reasons.hpp"

namespace lotus::tool {

using lotus::detail::wait_reason;

/// wait_sample::what of a wait for the end of a thread.
inline constexpr std::string_view thread_end_word = "the end of a thread";

/// One observation of a waiting thread. The recorded program takes such samples at random times.
struct wait_sample {
  std::int64_t time_ns = 0;  ///< time of the sample, in ns since 1970
  std::uint64_t tid = 0;
  wait_reason reason = wait_reason::other;
  /// What the thread waits for: a file, network peer, system call or variable; "" if unknown.
  std::string what;
  std::uint64_t address = 0;  ///< address of the lock or condition variable; 0: none
  std::uint64_t holder = 0;   ///< id of the thread that held the lock; 0: unknown
  std::int64_t ns = 0;        ///< blocked time in ns for which this sample stands
  std::uint64_t stack = 0;    ///< number of the stack in the process's file of stacks; 0: none
  /// Number of the stack that the lock's holder had at this time; 0: the holder was running;
  /// nullopt: unknown.
  std::optional<std::uint64_t> holder_stack{};
};

/// The wait samples of all threads of one process.
struct process_waits {
  std::string ending;  ///< the end of the file name, which the process's information file has too
  std::vector<wait_sample> samples;
};

/// Returns the wait samples of each process of a run; empty if there are none. Reports damaged
/// lines to `diagnostics`. Throws input_error.
std::vector<process_waits> read_waits(const run_files& run, diagnostic_log& diagnostics);

/// Returns for each file of waits, by its path, lines to append: they contain the names of
/// variables that are not stored in the file yet. Throws input_error.
std::map<std::string, std::string> variable_names_text(const run_files& run);

/// Returns the word that stands for a reason in files, such as "lock".
inline const char* reason_word(wait_reason reason) noexcept {
  return lotus::detail::wait_reason_words[static_cast<std::size_t>(reason)];
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_WAITS_DATA_WAIT_FILES_HPP
