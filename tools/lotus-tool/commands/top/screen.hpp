// Formats the state that `top` shows as lines that fit the screen.
#ifndef LOTUS_TOOL_COMMANDS_TOP_SCREEN_HPP
#define LOTUS_TOOL_COMMANDS_TOP_SCREEN_HPP

#include <cstddef>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "commands/top/live_runs.hpp"

namespace lotus::tool {

struct screen_state {
  std::optional<std::size_t> rows;
  std::size_t columns = 100;
  live_order order = live_order::self;
  std::size_t chosen = 0;  ///< index of the run that is shown in detail
  bool paused = false;
  bool keys = false;  ///< whether the user can press keys; if so, the screen lists them
  /// Lines to show while there is no run: what the threads of a program without markers did.
  std::vector<std::string> threads{};
  bool colours = false;  ///< whether the lines may contain escape sequences for colors (SGR)
};

/// Returns the lines that `print` prints to a stream that is `columns` wide.
std::vector<std::string> printed_lines(std::size_t columns,
                                       const std::function<void(std::ostream&)>& print);

/// Returns at most `rows` lines, none wider than the screen. If the screen is too small, some parts
/// are shortened or omitted. Texts from logs are reduced to printable characters, so that they
/// cannot control the terminal.
/// @param runs  may be empty.
std::vector<std::string> draw_screen(const std::vector<live_run>& runs, const screen_state& state);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TOP_SCREEN_HPP
