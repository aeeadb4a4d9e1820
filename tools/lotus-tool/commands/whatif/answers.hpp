// Prints the answers of whatif for one run.
#ifndef LOTUS_TOOL_COMMANDS_WHATIF_ANSWERS_HPP
#define LOTUS_TOOL_COMMANDS_WHATIF_ANSWERS_HPP

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "curve/curve.hpp"
#include "describe/described.hpp"
#include "findings/words.hpp"
#include "replay/change.hpp"
#include "replay/prediction.hpp"
#include "replay/target.hpp"

namespace lotus::tool {

/// A change that changes the throughput by less than this share is said to change nothing.
inline constexpr double hardly_different = 0.01;

struct answer {
  pipeline_change change;
  prediction would_be;
  double batches_out = 0;  ///< maximum number of batches in flight
};

struct whatif_answers {
  std::string dir;
  std::string loader;       ///< name of the loader; "" for the default loader
  phrase why_not;           ///< the reason if there are no answers; otherwise empty
  bool is_refused = false;  ///< whether the reason is that this run cannot be changed so
  const what_if* run = nullptr;
  phrase limit;                 ///< why more workers do not help; empty if they may
  bool has_second_run = false;  ///< whether the user gave a second run (--also)
  /// The changes and their effects; the one with the largest gain comes first.
  std::vector<answer> changes;
  std::vector<phrase> notes;  ///< what the prediction of the asked change assumes
  /// Fewer threads that are about as fast, because the others wait for each other.
  std::optional<pipeline_change> as_fast;
  std::optional<path_to_target> way;
  bool target_is_consumer = false;   ///< whether the target is what the consumer can receive
  std::optional<speed_curve> curve;  ///< with --curve, instead of changes
};

/// Returns the assumptions behind the answers, and effects that the answers do not include.
std::vector<std::string> assumptions_of(const whatif_answers& answers);

void print_answers(const whatif_answers& answers, std::ostream& out);
const description<answer>& description_of(const answer*);
const description<whatif_answers>& description_of(const whatif_answers*);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_WHATIF_ANSWERS_HPP
