// Names of any bytes in JSON, in a page's script element and on a terminal.
#include <rapidjson/document.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz.hpp"
#include "names.hpp"
#include "report.hpp"
#include "text.hpp"

using namespace lotus::tool;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view raw(reinterpret_cast<const char*>(data), size);  // NOLINT
  const std::string name = decode_name(raw);
  require(name.size() <= raw.size());

  const std::string safe = script_safe(json_string(name));
  require(safe.find_first_of("<>&") == std::string::npos);
  require(safe.find("\xE2\x80\xA8") == std::string::npos);
  rapidjson::Document document;
  document.Parse<rapidjson::kParseValidateEncodingFlag>(safe.data(), safe.size());
  require(!document.HasParseError() && document.IsString());
  const std::string_view back(document.GetString(), document.GetStringLength());
  require(back == printable(name));

  for (const char c : printable_line(name)) {
    require(static_cast<unsigned char>(c) >= 0x20U && c != '\x7f');
  }
  // What is valid already stays as it is.
  require(printable(printable(name)) == printable(name));
  return 0;
}
