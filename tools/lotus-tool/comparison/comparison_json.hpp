// Describes what `compare --json` prints and what the report's page shows of a comparison.
#ifndef LOTUS_TOOL_COMPARISON_COMPARISON_JSON_HPP
#define LOTUS_TOOL_COMPARISON_COMPARISON_JSON_HPP

#include "comparison/comparison.hpp"
#include "describe/described.hpp"

namespace lotus::tool {

/// A comparison and what was compared; both must outlive this object.
struct shown_comparison {
  const compared_sides* sides = nullptr;
  const comparison* found = nullptr;
};
const description<shown_comparison>& description_of(const shown_comparison*);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMPARISON_COMPARISON_JSON_HPP
