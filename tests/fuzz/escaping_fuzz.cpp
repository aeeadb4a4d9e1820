// Names of any bytes in JSON, in a page's script element and on a terminal.
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz.hpp"
#include "names.hpp"
#include "report.hpp"
#include "text.hpp"

using namespace lotus::tool;

namespace {

/// Takes one JSON string, and nothing else.
struct string_taker : rapidjson::BaseReaderHandler<rapidjson::UTF8<>, string_taker> {
  bool Default() { return false; }  // NOLINT(readability-identifier-naming)
  bool String(const char* text, rapidjson::SizeType n, bool) {  // NOLINT
    value.assign(text, n);
    return true;
  }
  std::string value;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view raw(reinterpret_cast<const char*>(data), size);  // NOLINT
  const std::string name = decode_name(raw);
  require(name.size() <= raw.size());

  const std::string safe = script_safe(json_string(name));
  require(safe.find_first_of("<>&") == std::string::npos);
  require(safe.find("\xE2\x80\xA8") == std::string::npos);
  rapidjson::MemoryStream stream(safe.data(), safe.size());
  rapidjson::Reader reader;
  string_taker taker;
  require(!reader.Parse<rapidjson::kParseValidateEncodingFlag>(stream, taker).IsError());
  require(taker.value == printable(name));

  for (const char c : printable_line(name)) {
    require(static_cast<unsigned char>(c) >= 0x20U && c != '\x7f');
  }
  // What is valid already stays as it is.
  require(printable(printable(name)) == printable(name));
  return 0;
}
