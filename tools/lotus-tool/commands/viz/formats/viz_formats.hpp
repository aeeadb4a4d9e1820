// The formats that viz writes.
#ifndef LOTUS_TOOL_COMMANDS_VIZ_FORMATS_VIZ_FORMATS_HPP
#define LOTUS_TOOL_COMMANDS_VIZ_FORMATS_VIZ_FORMATS_HPP

#include <memory>
#include <vector>

#include "base/files/output_file.hpp"
#include "commands/viz/formats/trace_sink.hpp"
#include "commands/viz/torch_trace.hpp"
#include "log/operation_names.hpp"

namespace lotus::tool {

struct viz_format {
  const char* name;
  /// Writes to `file`, which must outlive it, as `names` must. @param torch  the profiler trace
  /// that the run is merged into; null for none, and for formats that cannot be merged.
  std::unique_ptr<trace_sink> (*make)(output_file& file, const name_table& names,
                                      const torch_trace* torch);
};

/// The one table; help and errors name its rows. The first is the default, and the only one that
/// profiler traces can be merged into and that has the form of the original.
const std::vector<viz_format>& viz_formats();

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_VIZ_FORMATS_VIZ_FORMATS_HPP
