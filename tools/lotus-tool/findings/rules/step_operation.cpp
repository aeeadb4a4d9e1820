// Names the operation that takes most of the consumer's steps.
#include <optional>

#include "findings/facts/facts.hpp"
#include "findings/facts/outside_batches.hpp"
#include "findings/finding.hpp"
#include "findings/words.hpp"
#include "waits/join/blocked_on.hpp"

namespace lotus::tool {

std::optional<finding> step_operation(const run_facts& f) {
  constexpr double most_of_it = 0.5;
  if (f.d.pushed || f.states(path_kind::step).all < most_of_it) return std::nullopt;
  const std::optional<operation_sum> of = largest_in_steps(f.run);
  if (!of || of->self_ns < most_of_it * f.waits.steps_ns) return std::nullopt;
  return finding{"step-operation",
                 {"% takes % of the time of the consumer's steps, % per call.",
                  {name_word{of->name}, share_word{of->self_ns / f.waits.steps_ns},
                   time_word{of->self_ns / static_cast<double>(of->calls)}}}};
}

}  // namespace lotus::tool
