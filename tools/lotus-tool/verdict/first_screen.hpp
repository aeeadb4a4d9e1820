// The summary of a diagnosis that a user reads first, with the same words and numbers in all
// outputs.
#ifndef LOTUS_TOOL_VERDICT_FIRST_SCREEN_HPP
#define LOTUS_TOOL_VERDICT_FIRST_SCREEN_HPP

#include <optional>
#include <string>
#include <vector>

#include "base/formats/json_writer.hpp"
#include "verdict/diagnosis.hpp"

namespace lotus::tool {

/// The run time now and with one change, as text.
struct shown_advice {
  std::string change;
  std::string now;
  std::string then;
  std::string low;  ///< lower end of the 90 % confidence interval of `then`
  std::string high;
};

/// Whole percentages of the run's time. The shares of all rows add up to 100, and the parts of a
/// row to its share.
struct shown_share {
  std::string name;
  int share = 0;
  std::optional<int> running;
  std::optional<int> no_cpu;
  std::optional<int> blocked;
};

struct first_screen {
  std::string title;     ///< "run: 30 batches in 4.437 s (6.76 batches/s), 4 workers, 2 CPUs"
  std::string headline;  ///< the verdict, or the reason why there is none
  std::string why;       ///< the evidence, or what to do to get a verdict; may be ""
  std::vector<std::string> warnings;   ///< that affect how to read the rest
  std::vector<shown_advice> advice;    ///< at most three, shortest run time first
  std::vector<std::string> not_worth;  ///< changes that gain less than 5 %
  std::vector<shown_share> where;      ///< largest share first; the last row may be "4 more"
  std::string slowest;  ///< the slowest call; "" if none is far above its typical time
};

/// @param rows  the maximum number of rows of `where`.
first_screen first_screen_of(const diagnosis& d, std::size_t rows);

/// Writes the screen as a JSON object.
void write_first_screen(json_writer& json, const first_screen& screen);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_VERDICT_FIRST_SCREEN_HPP
