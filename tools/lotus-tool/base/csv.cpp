#include "base/csv.hpp"

#include <string>
#include <string_view>

#include "base/printable.hpp"

namespace lotus::tool {

std::string csv_field(std::string_view text) {
  std::string plain = printable_line(text);
  if (plain.find_first_of(R"(,")") == std::string::npos) return plain;
  std::string quoted = R"(")";
  for (const char c : plain) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace lotus::tool
