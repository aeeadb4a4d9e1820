// Describes what JSON outputs contain of the analyses of accelerator traces.
#ifndef LOTUS_TOOL_ACCELERATOR_ACCELERATOR_DESCRIBED_HPP
#define LOTUS_TOOL_ACCELERATOR_ACCELERATOR_DESCRIBED_HPP

#include <string>
#include <variant>
#include <vector>

#include "accelerator/analysis.hpp"
#include "accelerator/ranks.hpp"
#include "describe/described.hpp"

namespace lotus::tool {

/// The analysis of one trace, which must outlive this object.
struct shown_trace {
  const accelerator_analysis* of = nullptr;
  bool parts = false;  ///< whether with the idle times of every step and batch
};
const description<shown_trace>& description_of(const shown_trace*);

/// The analyses of the ranks of one training, which must outlive this object.
struct shown_ranks {
  const std::vector<accelerator_analysis>* ranks = nullptr;
  rank_comparison compared;
  bool parts = false;
};
const description<shown_ranks>& description_of(const shown_ranks*);

/// One trace, or several ranks.
using shown_accelerator = std::variant<shown_trace, shown_ranks>;

/// @param ranks  at least one.
shown_accelerator shown(const std::vector<accelerator_analysis>& ranks, bool parts);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_ACCELERATOR_ACCELERATOR_DESCRIBED_HPP
