#include "comparison/compared_names.hpp"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "base/largest.hpp"
#include "base/parallel.hpp"
#include "log/batch_kinds.hpp"
#include "log/folder/log_files.hpp"
#include "log/log_line.hpp"
#include "log/log_reader.hpp"
#include "log/operation_names.hpp"

namespace lotus::tool {

void compared_names::add(const run_files& run) {
  std::mutex mutex;
  for_each_in_parallel(run.files.size(), unlimited_threads, [&](std::size_t f) {
    name_table names;
    std::vector<std::int64_t> totals_ns;
    read_log(run.files[f], nullptr, [&](const log_line& line) {
      if (line.kind != record_kind::op) return;
      const std::uint32_t name = names.id(line.name);
      if (name >= totals_ns.size()) totals_ns.resize(name + std::size_t{1});
      totals_ns[name] += line.duration_ns;
    });
    const std::lock_guard<std::mutex> lock(mutex);
    for (std::uint32_t n = 0; n < totals_ns.size(); ++n) {
      const std::uint32_t name = names_.id_of_decoded(names.name(n));
      if (name >= totals_ns_.size()) totals_ns_.resize(name + std::size_t{1});
      totals_ns_[name] += totals_ns[n];
    }
  });
}

name_table compared_names::choose(std::size_t most, diagnostic_log& diagnostics) const {
  name_table chosen;
  if (names_.size() <= most) return chosen;
  // The ids depend on which log was read first, so equal operations are ordered by their names.
  const auto first = [this](std::uint32_t x, std::uint32_t y) {
    return names_.name(x) < names_.name(y);
  };
  for (const std::uint32_t name : indices_of_largest(totals_ns_, most, first)) {
    chosen.id_of_decoded(names_.name(name));
  }
  diagnostics.note("of " + std::to_string(names_.size()) + " operations, only the " +
                   std::to_string(most) + " with the most time are compared");
  return chosen;
}

}  // namespace lotus::tool
