// What a person needs of a diagnosis in ten seconds: the same words and numbers for all outputs.
#ifndef LOTUS_TOOL_VERDICT_FIRST_SCREEN_HPP
#define LOTUS_TOOL_VERDICT_FIRST_SCREEN_HPP

#include <optional>
#include <string>
#include <vector>

#include "base/formats/json_writer.hpp"
#include "verdict/diagnosis.hpp"

namespace lotus::tool {

/// Run times with one change, as text.
struct shown_advice {
  std::string change;
  std::string now;
  std::string then;
  std::string low;  ///< of the interval in which `then` lies with 90 % confidence
  std::string high;
};

/// Whole per cent of the run's time. The shares of all rows are 100 together, and those of a row
/// its share.
struct shown_share {
  std::string name;
  int share = 0;
  std::optional<int> running;
  std::optional<int> no_cpu;
  std::optional<int> blocked;
};

struct first_screen {
  std::string title;     ///< "run: 30 batches in 4.437 s (6.76 batches/s), 4 workers, 2 CPUs"
  std::string headline;  ///< the verdict, or why there is none
  std::string why;       ///< what it rests on, or what to do to get one; may be ""
  std::vector<std::string> warnings;   ///< that change how to read the rest
  std::vector<shown_advice> advice;    ///< at most three, the shortest run time first
  std::vector<std::string> not_worth;  ///< changes that gain less than 5 %
  std::vector<shown_share> where;      ///< the largest share first; the last may be "4 more"
  std::string slowest;                 ///< call; "" where none is far above its typical time
};

/// @param rows  of the table of shares, at most.
first_screen first_screen_of(const diagnosis& d, std::size_t rows);

/// As an object.
void write_first_screen(json_writer& json, const first_screen& screen);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_VERDICT_FIRST_SCREEN_HPP
