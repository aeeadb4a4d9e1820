#include "commands/report/timeline/call_tree.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/formats/json_writer.hpp"
#include "model/calls/nesting_order.hpp"

namespace lotus::tool {
namespace {

constexpr std::size_t max_depth = 6;  // must be equal to the value in the page's rows.js

}  // namespace

void call_tree::add(const operation& op) {
  while (!open_.empty() && open_.back().end_ns <= op.start_ns) open_.pop_back();
  const std::int64_t caller = open_.empty() ? -1 : open_.back().node;
  std::int64_t at = -1;
  if (open_.size() < max_depth) at = add_calls({caller, op.name, op.duration_ns, 1});
  open_.push_back({op.end_ns(), at});
}

void call_tree::add(call_tree other) {
  // Usually one log has most of the nodes, so the first tree is not copied.
  if (nodes_.empty()) {
    *this = std::move(other);
    return;
  }
  std::vector<std::int64_t> place;  // for each node of `other`: its index in this tree
  for (node n : other.nodes_) {
    if (n.caller >= 0) n.caller = place[static_cast<std::size_t>(n.caller)];
    place.push_back(add_calls(n));
  }
}

std::int64_t call_tree::add_calls(const node& calls) {
  const auto [found, is_new] = places_.try_emplace({calls.caller, calls.name}, nodes_.size());
  if (is_new) nodes_.push_back({calls.caller, calls.name, 0, 0});
  node& to = nodes_[found->second];
  to.ns += calls.ns;
  to.count += calls.count;
  return static_cast<std::int64_t>(found->second);
}

void call_tree::write(json_writer& json) const {
  json.begin_array();
  for (const node& of : nodes_) {
    json.begin_array().value(of.caller).value(of.name).value(of.ns).value(of.count);
    json.end_array();
  }
  json.end_array();
}

}  // namespace lotus::tool
