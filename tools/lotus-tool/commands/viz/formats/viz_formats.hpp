// Lists the output formats of viz.
#ifndef LOTUS_TOOL_COMMANDS_VIZ_FORMATS_VIZ_FORMATS_HPP
#define LOTUS_TOOL_COMMANDS_VIZ_FORMATS_VIZ_FORMATS_HPP

#include <array>
#include <memory>

#include "accelerator/trace/torch_trace.hpp"
#include "base/files/output_file.hpp"
#include "commands/viz/formats/trace_sink.hpp"
#include "log/operation_names.hpp"

namespace lotus::tool {

/// Creates a sink that writes to `file`; `file` and `names` must outlive the sink.
/// @param torch  the profiler trace that the run is merged into; null if there is none, or if the
///   format does not support merging.
using make_sink = std::unique_ptr<trace_sink>(output_file& file, const name_table& names,
                                              const torch_trace* torch);
make_sink make_chrome;
make_sink make_perfetto;

struct viz_format {
  const char* name;
  make_sink* make;
};

/// All formats, in the order in which help and errors list them. The first one is the default; only
/// this one supports --compat and merging into profiler traces.
inline constexpr std::array<viz_format, 2> viz_formats{{
    {"chrome", make_chrome},
    {"perfetto", make_perfetto},
}};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_VIZ_FORMATS_VIZ_FORMATS_HPP
