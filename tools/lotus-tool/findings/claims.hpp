// Decides which claims and suggestions the facts of a run forbid. Every output applies it.
#ifndef LOTUS_TOOL_FINDINGS_CLAIMS_HPP
#define LOTUS_TOOL_FINDINGS_CLAIMS_HPP

#include <cstddef>
#include <string_view>
#include <vector>

#include "findings/facts/facts.hpp"
#include "findings/finding.hpp"
#include "findings/verdict.hpp"
#include "model/run_data.hpp"
#include "replay/change.hpp"
#include "waits/join/blocked_on.hpp"

namespace lotus::tool {

/// Whether the recording shows that at most `most` calls of an operation are served at once: wait
/// samples show a lock or, without such samples, no more calls overlap. Calls whose times change
/// during the run only look as if they waited for each other.
bool shows_limit(const run_data& run, const run_blocked_on& joined, std::string_view operation,
                 std::size_t most);

class claims {
 public:
  /// Both arguments must outlive this object.
  claims(const run_facts& facts, const std::vector<finding>& findings)
      : f_(facts), findings_(findings) {}

  /// Whether a verdict contradicts how long the consumer waited, and for what.
  bool forbids(verdict is) const;
  /// Whether a change cannot help: more threads that would wait like the others, or a faster part
  /// that only waits for another or has no share of the critical path.
  /// @param workers  number of workers of the run.
  bool forbids(const pipeline_change& change, std::size_t workers) const;
  /// Whether waits for a CPU have another cause than other programs.
  bool forbids_idle_machine() const;

 private:
  bool forbids_faster(std::string_view name) const;

  const run_facts& f_;
  const std::vector<finding>& findings_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_CLAIMS_HPP
