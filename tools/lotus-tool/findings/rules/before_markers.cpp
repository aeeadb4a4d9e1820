// The program worked for long before its first marker, which no figure of the run contains.
#include <optional>

#include "findings/facts/facts.hpp"
#include "findings/finding.hpp"
#include "findings/words.hpp"

namespace lotus::tool {

std::optional<finding> worked_before_markers(const run_facts& f) {
  constexpr double much = 0.2;
  constexpr double fewest_ns = 1e8;
  if (f.cpu_before_ns < fewest_ns || f.cpu_before_ns < much * f.run_ns) return std::nullopt;
  return finding{"before-markers",
                 {"before its first marker, the program used % of CPU time, which the % of the run "
                  "do not include.",
                  {time_word{f.cpu_before_ns}, time_word{f.run_ns}}},
                 {"If this matters, put LOTUS_SCOPE into what it does first."}};
}

}  // namespace lotus::tool
