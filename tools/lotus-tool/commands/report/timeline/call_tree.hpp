// Finds which operation called which, for the icicle chart of the report.
#ifndef LOTUS_TOOL_COMMANDS_REPORT_TIMELINE_CALL_TREE_HPP
#define LOTUS_TOOL_COMMANDS_REPORT_TIMELINE_CALL_TREE_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/formats/json_writer.hpp"
#include "model/calls/nesting_order.hpp"

namespace lotus::tool {

/// The calls of a run, added up by operation and caller. The caller of an operation is the
/// operation that was open when it began. Calls that are nested deeper than the timeline can draw
/// are left out.
class call_tree {
 public:
  /// Adds a call. The calls of a log must be added in the order that nesting_order defines.
  void add(const operation& op);

  /// Adds the calls of another log.
  void add(call_tree other);

  /// Writes [[caller, name, ns, count], …]. A caller is the index of an earlier entry; -1 for none.
  void write(json_writer& json) const;

 private:
  struct node {
    std::int64_t caller = -1;
    std::uint32_t name = 0;
    std::int64_t ns = 0;
    std::uint64_t count = 0;
  };
  struct open_call {
    std::int64_t end_ns;
    std::int64_t node;
  };

  /// Adds calls; returns the index of their node.
  std::int64_t add_calls(const node& calls);

  std::vector<open_call> open_;
  std::vector<node> nodes_;
  std::map<std::pair<std::int64_t, std::uint32_t>, std::size_t> places_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_REPORT_TIMELINE_CALL_TREE_HPP
