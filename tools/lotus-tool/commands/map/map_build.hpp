// lotus-tool map build: builds the file mapping_funcs.json from reports of profilers. Prints
// mappings.
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
  std::string output;  ///< path of the mapping file; empty: only print the mapping
  print_as print = print_as::table;
  bool quiet = false;
};

/// Whether the folders of the reports are named after operations or after runs.
enum class folder_names { operations, runs };

/// Adds every report in `dir` and its subfolders. A report that names its operation belongs to this
/// operation. Any other report belongs to the operation with the name of its folder, which is `dir`
/// or a subfolder; if folders are named after runs, such reports are ignored. Returns the number of
/// reports. Throws input_error.
std::size_t add_reports(const std::string& dir, folder_names names, mapping_builder& to,
                        diagnostic_log& diagnostics);

/// Prints a mapping and writes it to the file `output`. Throws input_error if the mapping is empty.
void output_mapping(const mapping& m, const std::string& output, print_as print, std::ostream& out);

int run_map_build(const map_build_options& options, std::ostream& out, std::ostream& err);

/// Prints the mapping as a table.
void print_mapping(const mapping& m, std::ostream& out);
/// Prints the mapping as CSV with the columns op,function,module,hits,runs,samples,share.
void print_mapping_csv(const mapping& m, std::ostream& out);

/// Shortens a very long function name for a table: keeps its beginning and its end.
std::string shortened(const std::string& name);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_MAP_MAP_BUILD_HPP
