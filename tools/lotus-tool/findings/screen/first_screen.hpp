// Provides the summary of a diagnosis that a user reads first. All outputs show this summary with
// the same words and numbers.
#ifndef LOTUS_TOOL_FINDINGS_SCREEN_FIRST_SCREEN_HPP
#define LOTUS_TOOL_FINDINGS_SCREEN_FIRST_SCREEN_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "findings/diagnosis.hpp"
#include "findings/finding.hpp"
#include "findings/words.hpp"
#include "model/identifiers.hpp"
#include "model/path/critical_path.hpp"

namespace lotus::tool {

/// What a text of the summary is about. A report uses it to link the text to the operation, stage,
/// batches or time range.
struct shown_target {
  enum class kind : std::uint8_t {
    none,
    operation,  ///< all calls of `name`
    stage,      ///< the stage `name`
    batches,    ///< the batches and the consumer's waits for batches
    range,      ///< a range of time, of one thread if `file` is known
    call,       ///< a single call of `name`
  };
  kind what = kind::none;
  std::string name;         ///< name of the operation or stage without the leading S
  std::int64_t at_ns = 0;   ///< start, in ns after run_data::first_ns
  std::int64_t ns = 0;      ///< duration in ns
  optional_file file = {};  ///< index of the thread's log, if the target concerns one thread
};

/// Returns the operation or stage that a share of the critical path belongs to. Other shares, such
/// as waits for delivery, have none; then returns the longest interval of the share.
shown_target target_of(const path_share& share);

/// A suggested change, and the run time now and with the change.
struct shown_advice {
  const suggestion* of = nullptr;  ///< the suggestion, which belongs to the diagnosis
  bool is_sure = false;            ///< whether it certainly gains
  double now_ns = 0;
  double then_ns = 0;
  double low_ns = 0;  ///< lower end of the 90 % confidence interval of `then_ns`
  double high_ns = 0;
  shown_target target;  ///< the part of the run that would change
};

/// Returns the change, such as "perhaps 3 workers instead of 1".
std::string what_of(const shown_advice& advice);
/// Returns why the change may gain nothing, or much less; "" if it certainly gains.
std::string condition_of(const shown_advice& advice);
/// Returns both.
std::string change_of(const shown_advice& advice);

/// One row of the table that shows where the run's time goes, in whole percent of the run's time.
/// The shares of all rows add up to 100; `running`, `no_cpu` and `blocked` add up to `share`.
struct shown_share {
  phrase name;
  int share = 0;
  std::optional<int> running;
  std::optional<int> no_cpu;
  std::optional<int> blocked;
};

/// Returns the rows, largest share first. The last one may stand for several parts.
/// @param rows  their maximum number.
std::vector<shown_share> path_rows(const critical_path& path, std::size_t rows);

struct first_screen {
  phrase title;     ///< title, such as "run: 30 batches in 4.437 s (6.76 batches/s), 4 workers"
  phrase headline;  ///< the verdict, or the reason why there is none
  phrase explained_headline;         ///< the same, with what the consumer is
  bool names_in_flight = false;      ///< whether texts speak of batches in flight
  phrase why;                        ///< the evidence, or what to do to get a verdict; may be empty
  std::vector<phrase> warnings;      ///< warnings about the measurements, shown before the rest
  std::vector<shown_advice> advice;  ///< at most three suggestions, shortest run time first
  phrase assumption;  ///< assumption behind the predictions; empty if there is no important one
  std::vector<phrase> not_worth;  ///< changes that gain less than 5 %
  /// Rows of the table, largest share first. The last row may stand for several operations, such as
  /// "4 smaller parts".
  std::vector<shown_share> where;
  phrase slowest;  ///< the slowest call; empty if no call took unusually long
  shown_target slowest_target;
};

/// What the operation or stage with the largest share of the critical path waits for, if it waits
/// for most of its time and this concerns the verdict.
struct shown_wait {
  std::string of;  ///< name of the operation or stage, without S; "" if there is none
  phrase text;     ///< without a final period; empty if a finding says the same
};
shown_wait largest_wait(const diagnosis& d);

/// Returns how often each batch calls an operation, without final period; empty if that is hardly
/// more than once.
/// @param operation  its name without the S that begins it in logs.
phrase many_calls(const diagnosis& d, const std::string& operation);

/// Returns a sentence about a call that took unusually long.
phrase slow_call(const diagnosis& d, const slow_sample& s);

/// Returns the finding that gives the reason for the verdict; nullptr if the simulation does.
const finding* reason_of(const diagnosis& d);

/// Composes the summary.
/// @param rows  the maximum number of rows of `where`.
first_screen first_screen_of(const diagnosis& d, std::size_t rows);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_SCREEN_FIRST_SCREEN_HPP
