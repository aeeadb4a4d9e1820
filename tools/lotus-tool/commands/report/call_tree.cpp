#include "commands/report/call_tree.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/formats/json_writer.hpp"
#include "base/parallel.hpp"
#include "model/calls/nesting_order.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {
namespace {

constexpr std::size_t max_depth = 6;  // must be equal to the value in the page's rows.js

struct node {
  std::int64_t caller = -1;
  std::uint32_t name = 0;
  std::int64_t ns = 0;
  std::uint64_t count = 0;
};

class call_tree {
 public:
  /// Adds a call below the operation that was open when the call began.
  /// @param op  the call. The calls of a log must be added in the order that nesting_order defines.
  void add(const operation& op) {
    while (!open_.empty() && open_.back().end_ns <= op.start_ns) open_.pop_back();
    const std::int64_t caller = open_.empty() ? -1 : open_.back().node;
    std::int64_t at = -1;
    if (open_.size() < max_depth) at = add({caller, op.name, op.duration_ns, 1});
    open_.push_back({op.end_ns(), at});
  }

  /// Adds the tree of another log.
  void add(const call_tree& other) {
    std::vector<std::int64_t> place;  // for each node of `other`: its index in this tree
    for (node n : other.nodes_) {
      if (n.caller >= 0) n.caller = place[static_cast<std::size_t>(n.caller)];
      place.push_back(add(n));
    }
  }

  const std::vector<node>& nodes() const noexcept { return nodes_; }

 private:
  /// Adds calls; returns the index of their node.
  std::int64_t add(const node& calls) {
    const auto [found, is_new] = places_.try_emplace({calls.caller, calls.name}, nodes_.size());
    if (is_new) nodes_.push_back({calls.caller, calls.name, 0, 0});
    node& to = nodes_[found->second];
    to.ns += calls.ns;
    to.count += calls.count;
    return static_cast<std::int64_t>(found->second);
  }

  struct open_call {
    std::int64_t end_ns;
    std::int64_t node;
  };
  std::vector<open_call> open_;
  std::vector<node> nodes_;
  std::map<std::pair<std::int64_t, std::uint32_t>, std::size_t> places_;
};

}  // namespace

void write_call_tree(json_writer& json, const run_data& run,
                     const std::vector<std::uint32_t>& name_of) {
  std::vector<call_tree> trees(run.files->files.size());
  for_each_in_parallel(trees.size(), unlimited_threads, [&](std::size_t f) {
    if (!run.has_operations(f)) return;
    nesting_order order;
    const auto add = [&tree = trees[f]](const operation& op) { tree.add(op); };
    run.for_each_operation(f, [&](const operation& op) { order.push(op, add); });
    order.finish(add);
  });
  call_tree tree;
  for (call_tree& of_log : trees) {
    // Usually one log has most of the nodes, so the first tree is not copied.
    if (tree.nodes().empty()) {
      tree = std::move(of_log);
    } else {
      tree.add(std::exchange(of_log, {}));
    }
  }
  json.begin_array();
  for (const node& of : tree.nodes()) {
    json.begin_array().value(of.caller).value(name_of[of.name]).value(of.ns).value(of.count);
    json.end_array();
  }
  json.end_array();
}

}  // namespace lotus::tool
