#include "base/csv.hpp"

#include <string>
#include <string_view>

#include "base/printable.hpp"

namespace lotus::tool {
namespace {

std::string quoted(std::string_view text) {
  std::string field = R"(")";
  for (const char c : text) {
    if (c == '"') field += '"';
    field += c;
  }
  return field + '"';
}

}  // namespace

std::string csv_field(std::string_view text) {
  std::string plain = printable_line(text);
  return plain.find_first_of(R"(,")") == std::string::npos ? plain : quoted(plain);
}

std::string csv_exact_field(std::string_view text) {
  std::string plain = printable(text);
  const bool may_stand = !plain.empty() && plain.find_first_of("\",\r\n") == std::string::npos;
  return may_stand ? plain : quoted(plain);
}

}  // namespace lotus::tool
