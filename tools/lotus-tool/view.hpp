// Which part of a run is drawn.
#ifndef LOTUS_TOOL_VIEW_HPP
#define LOTUS_TOOL_VIEW_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "names.hpp"
#include "run_model.hpp"

namespace lotus::tool {

/// One end of a window: a time after the run's beginning, or a batch.
struct window_end {
  std::optional<std::int64_t> after_ns;
  std::uint32_t epoch = 0;
  std::int64_t batch = -1;
};

/// Reads "2.5", "2.5s", "300ms", "2m" (a time), or "batch:12", "batch:1/12" (batch 12 of epoch 0
/// or 1). Throws usage_error that names `option`.
window_end parse_window_end(const std::string& text, const std::string& option);

/// Reads a length of time, "5s". Throws usage_error that names `option`.
std::int64_t parse_duration_ns(const std::string& text, const std::string& option);

/// What the user wants to see of every run.
struct view_options {
  std::optional<window_end> from;
  std::optional<window_end> to;
  std::optional<std::int64_t> last_ns;      ///< the last part of the run
  std::vector<std::string> ops;             ///< names with or without S; empty: all
  std::optional<std::size_t> only_slowest;  ///< this many batches, by preprocess time

  bool everything() const noexcept {
    return !from && !to && !last_ns && ops.empty() && !only_slowest;
  }
};

/// Whether a run has the batches that bound the window.
bool has_window(const view_options& options, const run_batches& batches);

/// Decides for one run. Slices that reach into the window are drawn whole.
class view {
 public:
  /// Throws usage_error when a batch that bounds the window does not exist.
  view(const view_options& options, const run_batches& batches, std::int64_t first_ns,
       std::int64_t last_ns);

  bool has_time(std::int64_t start_ns, std::int64_t end_ns) const noexcept {
    return start_ns <= to_ns_ && end_ns >= from_ns_;
  }
  /// @param place  the batch's place in run_batches::all().
  bool has_batch(std::size_t place) const noexcept { return !chosen_ || chosen_batches_[place]; }
  /// @param file  place of its log in the run.
  bool has_operation(std::size_t file, std::uint32_t name, std::int64_t start_ns,
                     std::int64_t end_ns, const name_table& names) {
    if (!has_time(start_ns, end_ns)) return false;
    return simple_ || (has_name(name, names) && is_in_chosen_batch(file, start_ns, end_ns));
  }
  /// Whether any operation so far had a wanted name.
  bool found_names() const noexcept { return ops_.empty() || name_found_; }
  std::int64_t from_ns() const noexcept { return from_ns_; }
  std::int64_t to_ns() const noexcept { return to_ns_; }

 private:
  void choose_slowest(std::size_t n, const run_batches& batches);
  bool has_name(std::uint32_t name, const name_table& names);
  bool is_in_chosen_batch(std::size_t file, std::int64_t start_ns, std::int64_t end_ns) const;

  std::int64_t from_ns_ = INT64_MIN;
  std::int64_t to_ns_ = INT64_MAX;
  bool simple_ = true;  // only the window bounds operations
  bool chosen_ = false;
  std::vector<bool> chosen_batches_;
  // By log: when the chosen batches were preprocessed there, in order.
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> chosen_spans_;
  std::vector<std::string> ops_;
  bool name_found_ = false;
  std::vector<signed char> name_known_;  // by name: 1 wanted, 0 not, -1 not looked at yet
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_VIEW_HPP
