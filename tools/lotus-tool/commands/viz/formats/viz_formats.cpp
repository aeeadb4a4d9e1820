#include "commands/viz/formats/viz_formats.hpp"

#include <memory>
#include <vector>

#include "accelerator/trace/torch_trace.hpp"
#include "base/files/output_file.hpp"
#include "commands/viz/formats/chrome_sink.hpp"
#include "commands/viz/formats/perfetto_sink.hpp"
#include "commands/viz/formats/speedscope_sink.hpp"
#include "commands/viz/formats/trace_sink.hpp"
#include "log/operation_names.hpp"

namespace lotus::tool {
namespace {

std::unique_ptr<trace_sink> make_chrome(output_file& file, const name_table& names,
                                        const torch_trace* torch) {
  return std::make_unique<chrome_sink>(file, names, torch);
}

template <class Sink>
std::unique_ptr<trace_sink> make(output_file& file, const name_table& names,
                                 const torch_trace* /*torch*/) {
  return std::make_unique<Sink>(file, names);
}

}  // namespace

const std::vector<viz_format>& viz_formats() {
  static const std::vector<viz_format> formats{
      {"chrome", make_chrome},
      {"perfetto", make<perfetto_sink>},
      {"speedscope", make<speedscope_sink>},
  };
  return formats;
}

}  // namespace lotus::tool
