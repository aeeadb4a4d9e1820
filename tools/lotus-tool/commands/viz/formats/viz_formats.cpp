#include "commands/viz/formats/viz_formats.hpp"

namespace lotus::tool {

const std::vector<viz_format>& viz_formats() {
  static const std::vector<viz_format> formats{
      {"chrome", make_chrome},
      {"perfetto", make_perfetto},
  };
  return formats;
}

}  // namespace lotus::tool
