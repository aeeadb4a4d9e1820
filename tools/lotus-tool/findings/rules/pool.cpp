// Most calls of the largest part of the path wait at one place until another call is over.
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "findings/facts/facts.hpp"
#include "findings/finding.hpp"
#include "findings/words.hpp"
#include "model/path/critical_path.hpp"
#include "waits/join/blocked_on.hpp"

namespace lotus::tool {
namespace {

double in_tenths(double of) {
  return std::round(10 * of) / 10;
}

}  // namespace

std::optional<finding> waits_for_few(const run_facts& f) {
  constexpr std::uint64_t fewest = 20;
  constexpr double mostly = 0.4;
  const path_share* const work = f.largest_work();
  const blocked_list* const list = work == nullptr ? nullptr : f.d.blocked_on.of('S' + work->name);
  if (list == nullptr || list->samples < fewest || f.waits.share() < waits_much ||
      f.run.operations > most_searched_operations) {
    return std::nullopt;
  }
  const blocked_on& at = list->by.front();
  const double blocked = f.states_of(work->name).blocked;
  if (at.reason != wait_reason::condition || at.what.address == 0 || at.share < mostly ||
      blocked < mostly || rate_limit(f)) {
    return std::nullopt;
  }
  const double open = mean_open(f.run, work->name);
  // If hardly any call goes on, the calls wait for another thread, not for each other.
  const double going = open * (1 - at.share * blocked / f.states_of(work->name).all);
  if (going < 0.7 || open < 1.5 * going) return std::nullopt;
  const std::string calls = own_calls(at);
  phrase because{
      "of the % calls of % that are open on average, only % go on; the others wait",
      {count_word{in_tenths(open)}, name_word{work->name}, count_word{in_tenths(going)}}};
  if (!calls.empty()) because.add(" in %", {name_word{calls}});
  return finding{"few-go-on",
                 because.add("."),
                 {"If that is a pool (such as of connections) or a semaphore, let more in at once. "
                  "More workers would wait, too."},
                 blocked,
                 {},
                 forbids_threads};
}

}  // namespace lotus::tool
