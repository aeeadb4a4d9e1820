#include "mapping/read/function_report.hpp"

#include <cstddef>
#include <string>
#include <string_view>

#include "mapping/read/comparable_names.hpp"

namespace lotus::tool {

std::string function_key(std::string_view function, std::string_view module) {
  const std::size_t slash = module.rfind('/');
  if (slash != std::string_view::npos) module.remove_prefix(slash + 1);
  return std::string(function) + '|' + std::string(module);
}

bool is_own_function(std::string_view function) {
  // The functions of Lotus are in the namespace lotus::v<major>_<minor>. bare_function() removes a
  // return type, which may precede this namespace.
  constexpr std::string_view start = "lotus::v";
  const std::string name = bare_function(function);
  return name.compare(0, start.size(), start) == 0 && name.size() > start.size() &&
         name[start.size()] >= '0' && name[start.size()] <= '9';
}

}  // namespace lotus::tool
