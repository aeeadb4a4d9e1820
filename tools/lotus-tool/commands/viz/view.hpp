// Selects the part of a run that is drawn.
#ifndef LOTUS_TOOL_COMMANDS_VIZ_VIEW_HPP
#define LOTUS_TOOL_COMMANDS_VIZ_VIEW_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "log/operation_names.hpp"
#include "log/window/time_window.hpp"
#include "log/window/wanted_part.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// Selects the batches or items that took longest.
struct slowest {
  std::size_t count = 0;
  std::string stage;  ///< stage whose slowest batches or items are drawn; "": batches as a whole
};

/// Converts "5" (batches) or "Decode:5" (a stage's batches or items). Throws usage_error.
slowest parse_slowest(const std::string& text);

/// The user's options for the part that is drawn of every run.
struct view_options {
  std::vector<std::string> ops;  ///< names of the operations to draw, with or without S; empty: all
  std::optional<slowest> only_slowest;

  bool everything() const noexcept { return ops.empty() && !only_slowest && !part_to_read(); }
};

/// Whether a run contains the batches at the window's ends and the stage with the slowest items.
bool has_window(const view_options& options, const run_data& run);

/// Decides what is drawn of one run. A slice that overlaps the window is drawn in full.
class view {
 public:
  /// Throws usage_error if the run lacks a batch that is an end of the window, or the stage whose
  /// slowest batches or items are wanted.
  view(const view_options& options, const run_data& run);

  bool has_time(std::int64_t start_ns, std::int64_t end_ns) const noexcept {
    return part_.has(start_ns, end_ns);
  }
  bool has_batch(batch_id id) const noexcept { return !chosen_ || chosen_batches_[id.value()]; }
  bool has_preprocessing(span_number span) const noexcept {
    return !chosen_ || chosen_preprocessings_[span];
  }
  /// Whether operations of this name are drawn. If so, found_names() returns true from now on.
  bool has_name(std::uint32_t name, const name_table& names);
  /// Whether to draw an interval that is neither an operation nor a record of a batch, such as a
  /// time off the CPU.
  /// @param file  index of the log of the interval's thread.
  bool has_interval(std::size_t file, std::int64_t start_ns, std::int64_t end_ns) const {
    return has_time(start_ns, end_ns) && is_in_chosen_batch(file, start_ns, end_ns);
  }
  /// Whether only chosen batches or items are drawn.
  bool is_chosen() const noexcept { return chosen_; }
  /// Whether to draw an operation.
  /// @param file  index of the operation's log in the run.
  bool has_operation(std::size_t file, std::uint32_t name, std::int64_t start_ns,
                     std::int64_t end_ns, const name_table& names) {
    if (!has_time(start_ns, end_ns)) return false;
    return simple_ || (has_name(name, names) && is_in_chosen_batch(file, start_ns, end_ns));
  }
  /// Whether has_name() has found a wanted name, or all names are wanted.
  bool found_names() const noexcept { return ops_.empty() || name_found_; }

 private:
  void choose_batches(std::size_t count, const run_batches& batches);
  void choose_items(const slowest& wanted, const run_data& run);
  void choose_spans(const run_batches& batches);
  bool is_in_chosen_batch(std::size_t file, std::int64_t start_ns, std::int64_t end_ns) const;

  time_window part_;
  bool simple_ = true;  // true if the window alone decides which operations are drawn
  bool chosen_ = false;
  std::vector<bool> chosen_batches_;
  std::vector<bool> chosen_preprocessings_;
  // For each log, the sorted intervals in which its thread worked on the chosen batches and items.
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> chosen_spans_;
  std::vector<std::string> ops_;
  bool name_found_ = false;
  // State of each name: 1 wanted, 0 not wanted, -1 not checked yet.
  std::vector<signed char> name_known_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_VIZ_VIEW_HPP
