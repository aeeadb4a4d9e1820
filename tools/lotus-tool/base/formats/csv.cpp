#include "base/formats/csv.hpp"

#include "base/printable.hpp"

namespace lotus::tool {
namespace {

std::string in_quotes(std::string_view text) {
  std::string field = R"(")";
  for (const char c : text) {
    if (c == '"') field += '"';
    field += c;
  }
  return field + '"';
}

bool begins_a_formula(std::string_view text) {
  for (const std::string_view start :
       {"=", "+", "-", "@", "\t", "\r", "\n", "\uFF1D", "\uFF0B", "\uFF0D", "\uFF20"}) {
    if (text.substr(0, start.size()) == start) return true;
  }
  return false;
}

}  // namespace

std::string csv_guarded(std::string_view text) {
  const bool guarded = begins_a_formula(text) || text.substr(0, 1) == "'";
  return (guarded ? "'" : "") + std::string(text);
}

std::string csv_field(std::string_view text) {
  std::string plain = csv_guarded(printable_line(text));
  return plain.find_first_of(R"(,")") == std::string::npos ? plain : in_quotes(plain);
}

std::string csv_exact_field(std::string_view text) {
  std::string plain = printable(text);
  const bool may_stand = !plain.empty() && plain.find_first_of("\",\r\n") == std::string::npos;
  return may_stand ? plain : in_quotes(plain);
}

}  // namespace lotus::tool
