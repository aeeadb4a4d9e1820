// Reports invalid environment variables, and reads variables that hold numbers.
#ifndef LOTUS_RECORD_ENVIRONMENT_REPORT_HPP
#define LOTUS_RECORD_ENVIRONMENT_REPORT_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "lotus/base/environment.hpp"
#include "lotus/config.hpp"
#include "lotus/record/message.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Prints that the environment variable `row` has the invalid value `bad`, which values are valid,
/// and which value is used instead. Callers pass this function as `report` to functions of
/// base/environment.hpp.
LOTUS_DETAIL_PER_MODULE LOTUS_DETAIL_COLD inline void say_of_variable(
    const variable_row& row, std::string_view bad) noexcept {
  const int bytes = static_cast<int>(bad.size());
  if (row.type == variable_type::number) {
    std::uint64_t number = 0;
    if (parse_number(bad.data(), number) && number > row.most) {
      return say("%s=%.*s: must be a number from %llu to %llu; taken as %s", row.name, bytes,
                 bad.data(), static_cast<unsigned long long>(row.least),
                 static_cast<unsigned long long>(row.most), row.otherwise);
    }
    return say("%s=%.*s: must be a number from %llu; taken as %s", row.name, bytes, bad.data(),
               static_cast<unsigned long long>(row.least), row.otherwise);
  }
  if (row.type == variable_type::text) {
    return say("%s=%.*s: must be %s; taken as: %s", row.name, bytes, bad.data(), row.values,
               row.otherwise);
  }
  // row.values contains the valid words, such as "itt|nvtx|torch". The message lists them as "itt,
  // nvtx and torch".
  char words[128];
  std::size_t used = 0;
  for (const char* c = row.values; *c != '\0' && used < sizeof(words) - 8; ++c) {
    const char* const between = std::strchr(c + 1, '|') == nullptr ? " and " : ", ";
    if (*c == '|') {
      for (const char* b = between; *b != '\0'; ++b) words[used++] = *b;
    } else {
      words[used++] = *c;
    }
  }
  words[used] = '\0';
  say("%s=%.*s is not known; it can be %s%s", row.name, bytes, bad.data(), words,
      row.type == variable_type::words ? ", with commas" : "");
}

/// Returns the number in an environment variable. If the variable contains no valid number, reports
/// that and returns the variable's default.
inline std::uint64_t number_setting(variable which) noexcept {
  std::uint64_t value = 0;
  environment_number(which, value, say_of_variable);
  return value;
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_RECORD_ENVIRONMENT_REPORT_HPP
