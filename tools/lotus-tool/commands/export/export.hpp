// lotus-tool export: writes a run in the formats of other programs.
#ifndef LOTUS_TOOL_COMMANDS_EXPORT_EXPORT_HPP
#define LOTUS_TOOL_COMMANDS_EXPORT_EXPORT_HPP

#include <cstdint>
#include <ostream>
#include <string>

#include "log/folder/log_files.hpp"

namespace lotus::tool {

enum class export_format : std::uint8_t { csv, sqlite, parquet, pstats, collapsed };

struct export_options {
  std::string dir;
  std::string prefix{default_prefix};
  std::string output;  ///< path of a file, or of a folder for csv and parquet; "-": standard output
  export_format format = export_format::csv;
  bool strict = false;
  bool quiet = false;
};

/// Writes the runs in options.dir. Formats that do not consist of tables accept only one run.
/// Returns the exit status; throws input_error.
int run_export(const export_options& options, std::ostream& out, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_EXPORT_EXPORT_HPP
