// The settings that `lotus-tool tune` may change, and their values.
#ifndef LOTUS_TOOL_COMMANDS_TUNE_KNOBS_HPP
#define LOTUS_TOOL_COMMANDS_TUNE_KNOBS_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lotus::tool {

/// What a setting changes in a pipeline. If this is `unknown`, the simulation cannot predict the
/// effect.
enum class knob_meaning : std::uint8_t { unknown, workers, prefetch, order, batch_size, stage };

/// A setting of the user's program, with the values to choose from.
struct knob {
  std::string name;
  std::vector<std::string> values;
  bool in_environment = false;  ///< whether it is an environment variable, not an argument
  knob_meaning meaning = knob_meaning::unknown;
  std::string stage;  ///< stage whose threads the setting changes, if `meaning` is `stage`
};

/// Converts a text such as "workers=1..4,8". Throws usage_error.
/// @param option  the option that the text was given to, for messages.
knob parse_knob(const std::string& text, bool in_environment, const std::string& option);

/// Returns the value as a number; nullopt if it is not a whole number of at least 0.
std::optional<std::size_t> number_of(const std::string& value);

/// The index of the chosen value in knob::values, for each knob.
using configuration = std::vector<std::size_t>;

/// All configurations of a command: all combinations of the values of its knobs.
class search_space {
 public:
  /// @param start  names of knobs with their values in the first run; the other knobs start with
  ///   their first value. Throws usage_error if a name is unknown, missing in the command, or given
  ///   twice, or if there are too many configurations.
  search_space(std::vector<knob> knobs, std::vector<std::string> command,
               const std::vector<std::pair<std::string, std::string>>& start);

  const std::vector<knob>& knobs() const noexcept { return knobs_; }
  const configuration& start() const noexcept { return start_; }
  std::size_t size() const noexcept;
  /// Returns all configurations; the last knob changes fastest.
  std::vector<configuration> all() const;

  const std::string& value(const configuration& at, std::size_t knob) const {
    return knobs_[knob].values[at[knob]];
  }
  /// Returns the value of the first knob with this meaning; nullopt if there is no such knob or its
  /// value is not a number.
  std::optional<std::size_t> number(const configuration& at, knob_meaning meaning) const;
  /// Returns the number of all threads that knobs determine: workers and threads of stages.
  std::size_t threads(const configuration& at) const;

  /// Returns the arguments of the command with the values in place of {NAME}.
  std::vector<std::string> command(const configuration& at) const;
  std::vector<std::pair<std::string, std::string>> environment(const configuration& at) const;
  /// Returns the command with its environment variables as a line that the user can paste into a
  /// shell.
  std::string shell_command(const configuration& at) const;
  /// Returns a text such as "workers=4, prefetch=2".
  std::string text(const configuration& at) const;

 private:
  std::vector<knob> knobs_;
  std::vector<std::string> command_;
  configuration start_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TUNE_KNOBS_HPP
