// Writes the data about the threads of sampled programs that the report shows in a table and in
// flame graphs.
#ifndef LOTUS_TOOL_THREADS_PAGE_THREAD_STACKS_HPP
#define LOTUS_TOOL_THREADS_PAGE_THREAD_STACKS_HPP

#include <set>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "base/formats/json_writer.hpp"

namespace lotus::tool {

/// The sampled threads in all folders of a report.
class sampled_threads {
 public:
  /// Reads the samples of a folder, unless they were read before or there are none.
  void add(const std::string& dir, diagnostic_log& diagnostics);
  /// Returns whether a folder that was passed to add() has samples.
  bool has(const std::string& dir) const { return dirs_.count(dir) != 0; }
  bool empty() const noexcept { return dirs_.empty(); }

  /// Writes for each folder the data that the first screen of the report shows.
  void write_first(json_writer& json) const;
  /// Writes for each folder the tree of calls, each with its time.
  void write_stacks(json_writer& json) const;

 private:
  std::set<std::string> dirs_;
  std::vector<std::string> first_;  // JSON of each folder
  std::vector<std::string> stacks_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_THREADS_PAGE_THREAD_STACKS_HPP
