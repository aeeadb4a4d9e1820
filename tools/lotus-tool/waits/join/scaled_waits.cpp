#include "waits/join/scaled_waits.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "log/shown_name.hpp"
#include "model/quantities.hpp"
#include "model/run_data.hpp"
#include "waits/join/blocked_on.hpp"

namespace lotus::tool {
namespace {

std::optional<std::int64_t> blocked_ns_of(const std::optional<cpu_split>& cpu) {
  return cpu ? cpu->blocked_ns : std::nullopt;
}

}  // namespace

const char* part_name(waiting_part part) noexcept {
  switch (part) {
    case waiting_part::operation:
      return "operation";
    case waiting_part::wait:
      return "wait";
    case waiting_part::preprocess:
      break;
  }
  return "preprocess";
}

std::vector<scaled_waits> scale_waits(const run_data& run, const run_blocked_on& joined) {
  std::vector<scaled_waits> all;
  if (joined.empty()) return all;
  std::map<std::string_view, const op_samples*> operations;
  for (const op_samples& op : run.ops) {
    if (joined.of(op.name) != nullptr) operations.emplace(op.name, &op);
  }
  for (const auto& [name, list] : joined.ops) {
    const auto op = operations.find(name);
    const std::optional<std::int64_t> blocked_ns =
        op == operations.end() ? std::nullopt : blocked_ns_of(op->second->details().cpu);
    all.push_back({waiting_part::operation, shown_name(name), list.of(blocked_ns)});
  }
  const auto add = [&](waiting_part part, quantity of, const blocked_list& list) {
    if (list.empty()) return;
    all.push_back({part, "", list.of(blocked_ns_of(cpu_of(run, of, 0)))});
  };
  add(waiting_part::wait, quantity::wait, joined.waits);
  add(waiting_part::preprocess, quantity::preprocess, joined.preprocessing);
  return all;
}

}  // namespace lotus::tool
