// Reads untrusted files in a child process, whose time, memory and stack are limited.
#ifndef LOTUS_TOOL_BASE_GUARDED_READER_HPP
#define LOTUS_TOOL_BASE_GUARDED_READER_HPP

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lotus::tool {

/// What reading an untrusted file may cost, in proportion to its size: enough for large files of
/// programs that mean no harm.
struct read_budget {
  std::uint64_t file_bytes = 0;

  unsigned seconds() const noexcept {
    return static_cast<unsigned>(2 + file_bytes / (std::uint64_t{32} << 20));
  }
  /// Memory in bytes, in addition to that of this process.
  std::uint64_t memory_bytes() const noexcept {
    return (std::uint64_t{256} << 20) + 4 * file_bytes;
  }
};

/// How deeply a value of an untrusted text may be nested.
inline constexpr std::size_t max_nesting = 200;
/// Whether JSON text contains arrays and objects that are nested more deeply than max_nesting.
bool is_nested_too_deeply(std::string_view json) noexcept;

/// Answers questions about a file in a child process. A file can be made so that its reader loops,
/// allocates without end or overflows its stack; libraries for debug information and demanglers
/// have no limits of their own. Such a file ends only the child. Not thread-safe.
class guarded_reader {
 public:
  /// @param answer  runs in the child process, where a change of other objects has no effect here.
  guarded_reader(read_budget budget, const std::function<std::string(const std::string&)>& answer);
  guarded_reader(const guarded_reader&) = delete;
  guarded_reader& operator=(const guarded_reader&) = delete;
  ~guarded_reader();

  /// Returns the answer; nullopt if the child process has exceeded its budget or crashed, now or
  /// before.
  std::optional<std::string> ask(const std::string& question);

 private:
  void end();

  pid_t child_ = -1;
  int socket_ = -1;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_GUARDED_READER_HPP
