#include "findings/checks/check.hpp"

#include <algorithm>
#include <utility>

#include "describe/description.hpp"
#include "findings/checks/checked_run.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

/// The checks of a run with batches or stages. A check may depend on the failures of those before.
constexpr check_rule* of_batches[] = {
    missing_markers, other_numbers,   empty_blocks,   waits_inside,  items_as_batches,
    late_waits,      unrecorded_work, negative_delay, loaders_mixed, twice,
    overlap,         segments,        consumed_late,  short_run,     oversubscribed};

}  // namespace

std::vector<check> failed_checks(const run_data& run, const recorded_work& work) {
  checked_run r(run, work);
  clock_set(r);  // it may be the cause of the others
  if (run.batches.all().empty() && run.side.stages.empty()) {
    overlap(r);
  } else {
    for (check_rule* const rule : of_batches) rule(r);
  }
  names_with_numbers(r);
  dropped(r);
  std::stable_sort(r.failed.begin(), r.failed.end(),
                   [](const check& a, const check& b) { return a.unsafe && !b.unsafe; });
  return std::move(r.failed);
}

phrase why_silent(const run_data& run, const std::vector<check>& failed) {
  std::vector<phrase> why;
  for (const check& c : failed) {
    if (c.unsafe) why.push_back(c.text);
  }
  return why.empty() ? why_no_pipeline(run) : joined(why);
}

std::string shown(const check& failed) {
  return text_of({failed.unsafe ? "no verdict [%]: " : "warning [%]: ",
                  {name_word{std::string(failed.id)}}}) +
         text_of(failed.text);
}

const description<check>& description_of(const check*) {
  static const description<check> all(
      "check", "a check of the recording that failed",
      {
          {"id", &check::id, "its identifier, such as unrecorded-work"},
          {"text", [](const check& c) { return text_of(c.text) + ". To do: " + text_of(c.to_do); },
           "what is wrong, and what to do"},
          {"unsafe", &check::unsafe, "whether no verdict may rest on this run"},
      });
  return all;
}

}  // namespace lotus::tool
