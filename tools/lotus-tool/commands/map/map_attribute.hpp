// lotus-tool map attribute: attributes hardware counters to operations (Lotus paper, Figure 6).
#ifndef LOTUS_TOOL_COMMANDS_MAP_MAP_ATTRIBUTE_HPP
#define LOTUS_TOOL_COMMANDS_MAP_MAP_ATTRIBUTE_HPP

#include <ostream>
#include <vector>

#include "commands/map/map_build.hpp"
#include "describe/described.hpp"
#include "mapping/attribution.hpp"

namespace lotus::tool {

struct map_attribute_options {
  attribution_inputs inputs;
  print_as print = print_as::table;
  bool quiet = false;
};

/// What JSON output contains.
struct attributions {
  std::vector<attribution> all;
};
const description<attributions>& description_of(const attributions*);

int run_map_attribute(const map_attribute_options& options, std::ostream& out, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_MAP_MAP_ATTRIBUTE_HPP
