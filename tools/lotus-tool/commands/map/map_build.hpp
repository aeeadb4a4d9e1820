// lotus-tool map build: builds mapping_funcs.json from profilers' reports.
#ifndef LOTUS_TOOL_COMMANDS_MAP_MAP_BUILD_HPP
#define LOTUS_TOOL_COMMANDS_MAP_MAP_BUILD_HPP

#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "mapping/mapping.hpp"

namespace lotus::tool {

enum class print_as { table, json, csv };

struct map_build_options {
  std::vector<std::string> dirs;
  hit_rule rule;
  std::string output;  ///< empty: print only
  print_as print = print_as::table;
  bool quiet = false;
};

/// What the folders of the reports are named after.
enum class folder_names { operations, runs };

/// Adds every report in `dir`. A report directly in `dir` belongs to the operation with the name of
/// `dir`; a report in a subfolder to the operation with the subfolder's name. If a report names its
/// operation itself, that name is used. If folders are named after runs, reports that name no
/// operation are left out. Returns the number of reports. Throws input_error.
std::size_t add_reports(const std::string& dir, folder_names names, mapping_builder& to,
                        diagnostic_log& diagnostics);

/// Writes and prints a mapping as requested. Throws input_error if it is empty.
void hand_over(const mapping& m, const std::string& output, print_as print, std::ostream& out);

int run_map_build(const map_build_options& options, std::ostream& out, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_MAP_MAP_BUILD_HPP
