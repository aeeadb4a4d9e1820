// The run that is checked, and the checks.
#pragma once

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "findings/checks/check.hpp"
#include "findings/checks/recorded_work.hpp"
#include "findings/facts/wait_parts.hpp"
#include "findings/words.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// A run with fewer batches is short.
inline constexpr std::size_t few_batches = 20;
/// Fewer batches do not show how markers are used: a few at the ends of a run may lack records.
inline constexpr std::size_t enough_batches = 8;

struct checked_run {
  checked_run(const run_data& the_run, const recorded_work& the_work)
      : run(the_run),
        work(the_work),
        waits(divide_waits(run, std::vector<bool>(run.batches.all().size(), true))) {}

  void fail(std::string_view id, bool unsafe, phrase text, phrase to_do) {
    failed.push_back({id, std::move(text), std::move(to_do), unsafe});
  }
  bool has(std::string_view id) const {
    return std::any_of(failed.begin(), failed.end(), [&](const check& c) { return c.id == id; });
  }

  const run_data& run;
  const recorded_work& work;
  wait_parts waits;
  std::vector<check> failed{};
  bool lacks_markers = false;  ///< set by missing_markers
  /// Returns whether the program has all markers, and the run was recorded and read as a whole.
  bool shows_all_markers() const {
    const bool is_part =
        run.files->is_part() || run.records.whole_from_ns != 0 || run.records.dropped > 0;
    return !lacks_markers && !is_part && !run.batches.pushed();
  }
};

/// A check adds to checked_run::failed what it finds.
using check_rule = void(checked_run& r);

check_rule missing_markers, other_numbers, empty_blocks, waits_inside;
check_rule items_as_batches, late_waits, negative_delay, loaders_mixed, segments, consumed_late;
check_rule short_run, unrecorded_work, twice, overlap, oversubscribed;
check_rule names_with_numbers, dropped, clock_set;

}  // namespace lotus::tool
