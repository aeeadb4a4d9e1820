#include "comparison/facts_of_sides.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostics.hpp"
#include "findings/claims.hpp"
#include "findings/finding.hpp"
#include "findings/verdict.hpp"
#include "findings/words.hpp"
#include "log/shown_name.hpp"
#include "model/run_data.hpp"
#include "waits/join/blocked_on.hpp"

namespace lotus::tool {
namespace {

/// Returns the verdicts of a side, such as "lock-bound or order-bound"; "" if a run has none.
std::string limits_of(const std::vector<diagnosis>& side) {
  std::set<std::string_view> names;
  for (const diagnosis& d : side) {
    if (!d.is) return {};
    names.insert(verdict_name(*d.is));
  }
  std::string text;
  for (const std::string_view name : names) text.append(text.empty() ? "" : " or ").append(name);
  return text;
}

bool has(const diagnosis& d, std::string_view id) {
  return std::any_of(d.findings.begin(), d.findings.end(),
                     [id](const finding& one) { return one.id == id; });
}

/// Adds the findings that all runs of one side have, and no run of the other. Findings that only
/// give a verdict are left out, because the verdict says the same.
void add_findings(const char* side, const std::vector<diagnosis>& these,
                  const std::vector<diagnosis>& others, std::vector<std::string>& to) {
  for (const finding& one : these.front().findings) {
    const auto is_in = [&one](const diagnosis& d) { return has(d, one.id); };
    if ((one.is && !one.instead) || !std::all_of(these.begin(), these.end(), is_in) ||
        std::any_of(others.begin(), others.end(), is_in)) {
      continue;
    }
    to.push_back(side + text_of(one.because));
  }
}

}  // namespace

std::vector<diagnosis> diagnoses_of(const std::vector<run_files>& runs, const std::string& loader,
                                    const compared_sides& sides) {
  constexpr std::size_t most = 3;  // a diagnosis takes longer than the comparison of a run
  diagnostic_log silent = diagnostic_log::silenced();
  std::vector<diagnosis> all;
  for (const run_files& run : runs) {
    if (run.loader != loader) continue;
    if (all.size() == most) break;
    const run_data data = read_run(run, diagnosis_parts, silent);
    judgement judged = diagnose_run(data, sides.skip_batches, silent, predictions::none);
    if (judged.found) all.push_back(std::move(*judged.found));
  }
  return all;
}

void add_facts(const std::vector<diagnosis>& before, const std::vector<diagnosis>& after,
               compared_loader& to) {
  if (before.empty() || after.empty()) return;
  const std::string was = limits_of(before);
  const std::string is = limits_of(after);
  if (!was.empty() && !is.empty() && was != is) {
    to.facts.push_back("bottleneck: " + was + " before, " + is + " after");
  }
  add_findings("before: ", before, after, to.facts);
  add_findings("after: ", after, before, to.facts);
  // Workers that share CPUs explain nothing if a limit, an affinity or other threads do.
  const auto explains = [](const finding& one) { return one.explains_cpu_waits; };
  for (const diagnosis& d : after) {
    if (std::any_of(d.findings.begin(), d.findings.end(), explains)) to.shared_cpus.clear();
  }
  for (cause& c : to.causes) {
    const diagnosis& slower = c.ns_a_batch > 0 ? after.front() : before.front();
    const blocked_on* const lock = claims(slower).waits_for_holder(shown_name(c.name));
    if (lock != nullptr) c.lock = lock_name(*lock) + ", held by " + lock->held_by;
  }
}

}  // namespace lotus::tool
