// The output formats of viz.
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
  /// Returns a sink that writes to `file`; `file` and `names` must outlive it.
  /// @param torch  the profiler trace that the run is merged into; null for none and for formats
  ///     without merging.
  std::unique_ptr<trace_sink> (*make)(output_file& file, const name_table& names,
                                      const torch_trace* torch);
};

/// All formats; help and errors list them. The first one is the default, and the only one that
/// supports merging into profiler traces and the original tool's events.
const std::vector<viz_format>& viz_formats();

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_VIZ_FORMATS_VIZ_FORMATS_HPP
