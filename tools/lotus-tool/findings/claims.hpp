// Decides which claims and suggestions the facts of a run forbid. Every output applies it.
#ifndef LOTUS_TOOL_FINDINGS_CLAIMS_HPP
#define LOTUS_TOOL_FINDINGS_CLAIMS_HPP

#include <cstddef>
#include <string_view>

#include "findings/diagnosis.hpp"
#include "findings/finding.hpp"
#include "findings/verdict.hpp"
#include "findings/words.hpp"
#include "model/run_data.hpp"
#include "replay/change.hpp"
#include "waits/join/blocked_on.hpp"

namespace lotus::tool {

/// Whether the recording shows that at most `most` calls of an operation are served at once: wait
/// samples show a lock or, without such samples, no more calls overlap. Calls whose times change
/// during the run only look as if they waited for each other.
bool shows_limit(const run_data& run, const run_blocked_on& joined, std::string_view operation,
                 std::size_t most);

/// Returns the finding that explains most of the run among those that say what limits it; nullptr
/// if there is none.
const finding* largest_cause(const diagnosis& d);

class claims {
 public:
  /// @param d  has its figures, path, waits, blocked_on and findings; must outlive this object.
  explicit claims(const diagnosis& d) noexcept : d_(d) {}

  /// Whether much of the critical path waits for a CPU, because of a limit or the program's own
  /// threads. Then a faster part alone gains little, but the CPUs are the bottleneck.
  bool lacks_cpus() const;
  /// Whether code outside of all markers uses CPUs for which the critical path waits.
  bool loses_cpus_to_unmarked() const;
  /// Whether batches that are built faster may help although the consumer limits the run: it waits
  /// for data, or for a CPU or a lock that the workers use.
  bool may_gain_from_building() const;
  /// Whether a pipeline without consumer could process many more batches than it received, so that
  /// none of its settings limits it.
  bool seems_service() const;
  /// Whether the consumer's step holds the lock that limits the run.
  bool step_holds_lock() const;
  /// Whether a verdict contradicts how long the consumer waited, and for what.
  bool forbids(verdict is) const;
  /// Returns why a change cannot help: more threads that would wait like the others, or a faster
  /// part that only waits for another or has no share of the critical path. Empty if it may help.
  phrase why_not(const pipeline_change& change) const;
  /// Whether a change must not be suggested, also because it is no cure for what limits the run.
  bool forbids(const pipeline_change& change) const;
  /// Returns why no change can be predicted, although the simulation is as long as the run: it does
  /// not know what limits the run. Empty if it does.
  phrase why_not_simulated() const;
  /// Returns the lock, held by other work, that an operation mostly waits for; nullptr if there is
  /// none. The operation only becomes faster if the lock's holder does.
  const blocked_on* waits_for_holder(std::string_view operation) const;
  /// Whether waits for a CPU have another cause than other programs.
  bool forbids_idle_machine() const;

 private:
  bool has(finding_effect effect) const { return first_with(effect, d_.findings) != nullptr; }
  /// Whether the consumer's steps have half of the critical path, without their waits for a CPU.
  bool steps_take_the_run() const;
  phrase why_not_faster(std::string_view name) const;
  bool has_more_threads(const pipeline_change& change) const;

  const diagnosis& d_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_CLAIMS_HPP
