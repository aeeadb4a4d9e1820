// What `top` shows, as lines that fit.
#ifndef LOTUS_TOOL_COMMANDS_TOP_SCREEN_HPP
#define LOTUS_TOOL_COMMANDS_TOP_SCREEN_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "commands/top/live_runs.hpp"

namespace lotus::tool {

struct screen_state {
  std::optional<std::size_t> rows;
  std::size_t columns = 100;
  live_order order = live_order::self;
  std::size_t chosen = 0;  ///< of the runs
  bool paused = false;
  bool keys = false;     ///< there is a keyboard
  bool colours = false;  ///< the lines may hold escape sequences (SGR), of ours only
};

/// At most so many lines, none wider than the screen; where there is not room for all, the longest
/// parts are cut. Nothing of the logs reaches the terminal but what can be printed.
/// @param runs  may be empty.
std::vector<std::string> draw_screen(const std::vector<live_run>& runs, const screen_state& state);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_TOP_SCREEN_HPP
