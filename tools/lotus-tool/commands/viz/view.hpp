// Selects which part of a run is drawn.
#ifndef LOTUS_TOOL_COMMANDS_VIZ_VIEW_HPP
#define LOTUS_TOOL_COMMANDS_VIZ_VIEW_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "log/operation_names.hpp"
#include "log/window/log_window.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// One end of a window: a time since the run's beginning, or a batch.
struct window_end {
  std::optional<std::int64_t> after_ns;
  std::uint32_t epoch = 0;
  std::int64_t batch = -1;
};

/// Reads a time ("2.5", "2.5s", "300ms", "2m") or a batch ("batch:12" in epoch 0, "batch:1/12" in
/// epoch 1). Throws usage_error that names `option`.
window_end parse_window_end(const std::string& text, const std::string& option);

/// Reads a duration, such as "5s". Throws usage_error that names `option`.
std::int64_t parse_duration_ns(const std::string& text, const std::string& option);

/// Selects what took longest.
struct slowest {
  std::size_t count = 0;
  std::string stage;  ///< its items, requests or batches; empty: batches by preprocess time
};

/// Reads "5" or "Decode:5". Throws usage_error.
slowest parse_slowest(const std::string& text);

/// What the user wants to see of every run.
struct view_options {
  std::optional<window_end> from;
  std::optional<window_end> to;
  std::optional<std::int64_t> last_ns;  ///< the last part of the run
  std::vector<std::string> ops;         ///< names with or without S; empty: all
  std::optional<slowest> only_slowest;

  bool everything() const noexcept {
    return !from && !to && !last_ns && ops.empty() && !only_slowest;
  }
};

/// The part of a run that must be read; nullopt if the whole run is needed, because batches are
/// counted from the run's beginning.
std::optional<wanted_part> part_of_run(const view_options& options);

/// Whether a run has the batches that bound the window, and the stage whose slowest items are
/// wanted.
bool has_window(const view_options& options, const run_data& run);

/// Decides what is drawn of one run. Slices that overlap the window are drawn in full.
class view {
 public:
  /// Throws usage_error if a batch that bounds the window, or the stage, does not exist.
  view(const view_options& options, const run_data& run);

  bool has_time(std::int64_t start_ns, std::int64_t end_ns) const noexcept {
    return start_ns <= to_ns_.value_or(start_ns) && end_ns >= from_ns_.value_or(end_ns);
  }
  bool has_batch(batch_id id) const noexcept { return !chosen_ || chosen_batches_[id.value()]; }
  bool has_making(span_number span) const noexcept { return !chosen_ || chosen_makings_[span]; }
  /// Whether operations of this name are wanted; also remembers that such a name exists.
  bool has_name(std::uint32_t name, const name_table& names);
  /// Whether an interval of a log's thread that has neither name nor batch is wanted.
  bool has_stretch(std::size_t file, std::int64_t start_ns, std::int64_t end_ns) const {
    return has_time(start_ns, end_ns) && is_in_chosen_batch(file, start_ns, end_ns);
  }
  /// Whether only chosen batches or items are wanted.
  bool is_chosen() const noexcept { return chosen_; }
  /// @param file  index of its log in the run.
  bool has_operation(std::size_t file, std::uint32_t name, std::int64_t start_ns,
                     std::int64_t end_ns, const name_table& names) {
    if (!has_time(start_ns, end_ns)) return false;
    return simple_ || (has_name(name, names) && is_in_chosen_batch(file, start_ns, end_ns));
  }
  /// Whether any operation so far had a wanted name.
  bool found_names() const noexcept { return ops_.empty() || name_found_; }

 private:
  void choose_batches(std::size_t count, const run_batches& batches);
  void choose_items(const slowest& wanted, const run_data& run);
  void choose_spans(const run_batches& batches);
  bool is_in_chosen_batch(std::size_t file, std::int64_t start_ns, std::int64_t end_ns) const;

  std::optional<std::int64_t> from_ns_;
  std::optional<std::int64_t> to_ns_;
  bool simple_ = true;  // operations are limited only by the window
  bool chosen_ = false;
  std::vector<bool> chosen_batches_;
  std::vector<bool> chosen_makings_;
  // By log: when it worked on the chosen batches and items, in order.
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> chosen_spans_;
  std::vector<std::string> ops_;
  bool name_found_ = false;
  std::vector<signed char> name_known_;  // by name: 1 wanted, 0 not wanted, -1 not checked yet
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_VIZ_VIEW_HPP
