// The program worked for long before its first marker, or after its last one, which no figure of
// the run contains.
#include <optional>

#include "findings/facts/facts.hpp"
#include "findings/finding.hpp"
#include "findings/words.hpp"

namespace lotus::tool {
namespace {

bool is_long(const outside_work& work, double run_ns) {
  constexpr double much = 0.2;
  constexpr double fewest_ns = 1e8;
  return work.cpu_ns >= fewest_ns && work.cpu_ns >= much * run_ns;
}

void add_work(const outside_work& work, phrase& to) {
  to.add("% of CPU time", {time_word{work.cpu_ns}});
  if (!work.function.empty()) to.add(", mostly in %", {name_word{work.function}});
}

}  // namespace

std::optional<finding> worked_outside_markers(const run_facts& f) {
  const bool before = is_long(f.before, f.run_ns);
  const bool after = is_long(f.after, f.run_ns);
  if (!before && !after) return std::nullopt;
  constexpr double clearly_longer = 1.25;
  phrase text;
  if (before) {
    text.add("before its first marker, the program ");
    if (f.before.all_ns > clearly_longer * f.before.cpu_ns) {
      text.add("took % and ", {time_word{f.before.all_ns}});
    }
    add_work(f.before, text.add("used "));
    if (after) add_work(f.after, text.add("; after its last one, "));
  } else {
    add_work(f.after, text.add("after its last marker, the program used "));
  }
  text.add("; the % of the run do not include this.", {time_word{f.run_ns}});
  return finding{before ? "before-markers" : "after-markers",
                 text,
                 {before ? "If this matters, put LOTUS_SCOPE into what it does first."
                         : "If this matters, put LOTUS_SCOPE into what it does last."}};
}

}  // namespace lotus::tool
