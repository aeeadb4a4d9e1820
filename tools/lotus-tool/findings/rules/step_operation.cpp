// Names what takes most of the consumer's steps: an operation, or a function without markers.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "findings/facts/facts.hpp"
#include "findings/facts/outside_batches.hpp"
#include "findings/finding.hpp"
#include "findings/words.hpp"
#include "waits/join/blocked_on.hpp"

namespace lotus::tool {

std::optional<finding> step_operation(const run_facts& f) {
  constexpr double most_of_it = 0.5;
  constexpr double worth_naming = 0.25;
  if (f.d.pushed || f.states(path_kind::step).all < most_of_it || f.waits.steps_ns <= 0) {
    return std::nullopt;
  }
  const std::vector<operation_sum> all = operations_in_steps(f.run);
  double marked = 0;
  for (const operation_sum& of : all) marked += of.self_ns / f.waits.steps_ns;
  phrase because;
  for (std::size_t i = 0; i < std::min<std::size_t>(2, all.size()); ++i) {
    const double share = all[i].self_ns / f.waits.steps_ns;
    if (share < (i == 0 ? most_of_it : worth_naming)) break;
    because.add(i == 0 ? "% takes % of the time of the consumer's steps, % per call"
                       : ", and % takes %, % per call",
                {name_word{all[i].name}, share_word{share},
                 time_word{all[i].self_ns / static_cast<double>(all[i].calls)}});
  }
  const std::string function = 1 - marked < worth_naming ? "" : function_in_steps(f.run);
  if (!because.empty()) {
    because.add(".");
    if (!function.empty()) {
      because.add(" % of this time is outside of all operations, mostly in %.",
                  {share_word{1 - marked}, name_word{function}});
    }
  } else if (!function.empty()) {
    because = {"the consumer's steps use the CPU mostly in %.", {name_word{function}}};
  }
  if (because.empty()) return std::nullopt;
  return finding{"step-operation", std::move(because)};
}

}  // namespace lotus::tool
