#include "waits/join/log_waits.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/diagnostics.hpp"
#include "log/log_line.hpp"
#include "log/log_reader.hpp"
#include "log/operation_names.hpp"
#include "model/run_data.hpp"
#include "waits/data/wait_files.hpp"
#include "waits/join/blocked_on.hpp"
#include "waits/join/sampled_waits.hpp"

namespace lotus::tool {

log_waits log_waits::read(const run_data& run, diagnostic_log& diagnostics) {
  log_waits found;
  name_table names;
  const auto each_operation = [&](std::size_t file, const on_operation& visit) {
    read_log(run.files->files[file], nullptr, [&](const log_line& line) {
      if (line.kind != record_kind::op) return;
      visit({line.start_ns, line.duration_ns, names.id(line.name)});
    });
  };
  const sampled_waits waits(run, sampled_waits::operations_of::holders, names, each_operation,
                            diagnostics);
  std::map<std::tuple<wait_reason, std::string, std::string>, std::uint32_t> known;
  found.of_log_.resize(run.files->files.size());
  for (const sampled_wait& wait : waits.all()) {
    std::string what = what_of(*wait.sample);
    std::string held_by =
        wait.sample->reason == wait_reason::lock ? waits.name_of(wait.holder) : std::string();
    const auto [entry, fresh] = known.try_emplace({wait.sample->reason, what, held_by},
                                                  static_cast<std::uint32_t>(known.size()));
    if (fresh) {
      blocked_on& one = found.entries_.emplace_back();
      one.reason = wait.sample->reason;
      one.what = std::move(what);
      one.held_by = std::move(held_by);
    }
    for (const std::size_t file : wait.logs) {
      found.of_log_[file].push_back({wait.sample->time_ns, entry->second});
    }
  }
  for (std::vector<moment>& of : found.of_log_) {
    std::stable_sort(of.begin(), of.end(),
                     [](const moment& a, const moment& b) { return a.time_ns < b.time_ns; });
  }
  return found;
}

std::vector<log_waits::moment>::const_iterator log_waits::first(std::size_t file,
                                                                std::int64_t ns) const {
  const std::vector<moment>& of = of_log_[file];
  return std::lower_bound(of.begin(), of.end(), ns,
                          [](const moment& m, std::int64_t wanted) { return m.time_ns < wanted; });
}

bool log_waits::has(std::size_t file, std::int64_t start_ns, std::int64_t end_ns) const {
  if (file >= of_log_.size() || of_log_[file].empty()) return false;
  const auto at = first(file, start_ns);
  return at != of_log_[file].end() && at->time_ns < end_ns;
}

std::string log_waits::text(std::size_t file, std::int64_t start_ns, std::int64_t end_ns,
                            const std::string& name) const {
  constexpr std::size_t max_named = 3;
  if (file >= of_log_.size()) return {};
  std::map<std::string, std::uint64_t> samples;
  for (auto at = first(file, start_ns); at != of_log_[file].end() && at->time_ns < end_ns; ++at) {
    ++samples[wait_phrase(entries_[at->entry], name)];
  }
  std::vector<std::pair<std::string, std::uint64_t>> all(samples.begin(), samples.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (std::size_t i = 0; i < std::min(all.size(), max_named); ++i) {
    text.append(i == 0 ? "" : ", ").append(all[i].first);
    text += " (" + std::to_string(all[i].second) + (all[i].second == 1 ? " sample)" : " samples)");
  }
  if (all.size() > max_named) text += " and " + std::to_string(all.size() - max_named) + " more";
  return text;
}

}  // namespace lotus::tool
