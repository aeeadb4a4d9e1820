// What the processes of a run tell about themselves, where they do.
#ifndef LOTUS_TOOL_RUN_INFO_HPP
#define LOTUS_TOOL_RUN_INFO_HPP

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace lotus::tool {

/// A process that recorded.
struct process_info {
  std::uint64_t pid = 0;
  std::uint64_t parent = 0;  ///< its parent's pid
  std::string host;
  std::optional<std::uint64_t> rank;
  std::map<std::uint64_t, std::string> threads;  ///< names by thread id

  /// "node17, rank 3, pid 4711"
  std::string title() const;
};

/// The processes of one directory by the thread ids that they used; where an id recurred, the
/// process that used it last. Unknown lines and damaged files are passed over: nothing depends on
/// them.
class run_info {
 public:
  /// Reads every information file of `dir`; none is fine.
  static run_info read(const std::string& dir);

  /// The process that thread `tid` belonged to, or null.
  const process_info* process_of(std::uint64_t tid) const;
  /// The process of this run that it came from, or null.
  const process_info* parent_of(const process_info& process) const;

 private:
  void take(const std::string& path);

  std::map<std::string, process_info> by_file_;
  std::map<std::uint64_t, const process_info*> by_tid_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_RUN_INFO_HPP
