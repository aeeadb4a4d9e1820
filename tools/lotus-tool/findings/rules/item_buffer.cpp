// The consumer waits until a buffer of items is full, such as a shuffle buffer.
#include <optional>

#include "findings/facts/facts.hpp"
#include "findings/finding.hpp"
#include "findings/verdict.hpp"
#include "findings/words.hpp"

namespace lotus::tool {

std::optional<finding> buffer_filled_first(const run_facts& f) {
  const item_buffer& buffer = f.buffer;
  if (f.d.pushed || buffer.fills == 0 || buffer.share < 0.5) return std::nullopt;
  phrase because{
      "% of the waiting is done while a buffer is filled (such as a shuffle buffer): "
      "about % were ready, enough for % batches, before a batch took the first of them",
      {share_word{buffer.share}, count_word{buffer.items, "item", "items"},
       count_word{static_cast<std::size_t>(buffer.batches)}}};
  if (buffer.fills > 1) {
    because.add(". That was so % times, % each",
                {count_word{buffer.fills}, time_word{buffer.mean_ns}});
  }
  const double share = buffer.share * f.waits.share();
  finding found{"buffer-filled-first",
                because.add("."),
                {"Let the buffer hold fewer items%, or take items before it is full.",
                 {name_word{buffer.fills > 1 ? ", keep it filled between epochs" : ""}}},
                share};
  constexpr double limits_the_run = 0.25;
  if (share >= limits_the_run) {
    found.is = verdict::hand_over_bound;
    found.effects = gives_reason | forbids_threads;
    found.title = "Batches are begun too late";
  }
  return found;
}

}  // namespace lotus::tool
