// Defines the part of a run that the user requests with --from, --to and --last.
#ifndef LOTUS_TOOL_LOG_WINDOW_WANTED_PART_HPP
#define LOTUS_TOOL_LOG_WINDOW_WANTED_PART_HPP

#include <cstdint>
#include <optional>
#include <string>

namespace lotus::tool {

/// One end of a part of a run: a time in ns since the start of the run, or a batch.
struct window_end {
  std::optional<std::int64_t> after_ns;
  std::uint32_t epoch = 0;
  std::int64_t batch = -1;
};

/// Converts a time ("2.5", "2.5s", "300ms", "2m") or a batch ("batch:12" in epoch 0, "batch:1/12"
/// in epoch 1). Throws usage_error with the name of `option`.
window_end parse_window_end(const std::string& text, const std::string& option);

/// Converts a duration such as "5s" to ns. Throws usage_error with the name of `option`.
std::int64_t parse_duration_ns(const std::string& text, const std::string& option);

/// The part of a run that the user requested. Missing values do not limit the part.
struct wanted_part {
  std::optional<window_end> from;
  std::optional<window_end> to;
  /// If set, the part is the end of the run, and this is its length in ns.
  std::optional<std::int64_t> last_ns;
  std::string options;  ///< the options with which the user requested it, such as " --last 5s"

  /// Takes the value `text` of --from, --to or --last. Throws usage_error.
  void take(const std::string& option, const std::string& text);
};

/// Sets which part of every run commands read; nullopt: the whole run.
void read_only_part(std::optional<wanted_part> part) noexcept;
/// Returns which part of every run commands read.
const std::optional<wanted_part>& part_to_read() noexcept;
/// Returns the options that request this part, such as " --last 5s"; "" for the whole run.
std::string part_options();

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_WINDOW_WANTED_PART_HPP
