// The names of the kinds of activities on a critical path.
#include <string>
#include <string_view>

#include "model/path/critical_path.hpp"

namespace lotus::tool {

std::string_view path_kind_name(path_kind kind) noexcept {
  static constexpr std::string_view names[] = {"operation", "stage",    "step",      "hand-over",
                                               "prefetch",  "start-up", "unrecorded"};
  return names[static_cast<std::size_t>(kind)];
}

std::string path_title(path_kind kind, std::string_view name) {
  switch (kind) {
    case path_kind::operation:
      return std::string(name);
    case path_kind::stage:
      return "stage " + std::string(name);
    case path_kind::step:
      return "the consumer's steps";
    case path_kind::delivery:
      return "passing data to a waiting thread";
    case path_kind::prefetch:
      return "before the next batch was begun";
    case path_kind::start_up:
      return "start-up, before the first batch";
    case path_kind::unrecorded:
      break;
  }
  return "worker time outside operations";
}

}  // namespace lotus::tool
