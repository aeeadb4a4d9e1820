// Fuzzes the escaping of names in JSON, in HTML script elements, and on a terminal.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "commands/report/report.hpp"
#include "fuzz.hpp"
#include "log/operation_names.hpp"

using namespace lotus::tool;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view raw(reinterpret_cast<const char*>(data), size);  // NOLINT
  const std::string name = decode_name(raw);
  require(name.size() <= raw.size());

  const std::string safe = script_safe(json_string(name));
  require(safe.find_first_of("<>&") == std::string::npos);
  require(safe.find("\xE2\x80\xA8") == std::string::npos);
  // The JSON parser is strict: it throws if the text is not valid UTF-8.
  require(nlohmann::json::parse(safe).get<std::string>() == printable(name));

  for (const char c : printable_line(name)) {
    require(static_cast<unsigned char>(c) >= 0x20U && c != '\x7f');
  }
  // Text that is valid already must not change.
  require(printable(printable(name)) == printable(name));
  return 0;
}
