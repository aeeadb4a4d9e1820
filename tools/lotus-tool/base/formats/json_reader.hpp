// Reads JSON, either completely into memory or as a stream of elements. All code that reads JSON
// uses the functions in this file.
#ifndef LOTUS_TOOL_BASE_FORMATS_JSON_READER_HPP
#define LOTUS_TOOL_BASE_FORMATS_JSON_READER_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/byte_stream.hpp"

namespace lotus::tool {

/// Receives the elements of a JSON text in their order. Each function returns whether stream_json()
/// shall continue to read. During a call, the position in the byte_stream is after the received
/// element.
class json_events {
 public:
  json_events() = default;
  json_events(const json_events&) = delete;
  json_events& operator=(const json_events&) = delete;
  virtual ~json_events() = default;

  virtual bool begin_object() { return true; }
  virtual bool end_object() { return true; }
  virtual bool begin_array() { return true; }
  virtual bool end_array() { return true; }
  /// Receives a key. `name` is valid only during the call. Every byte of a non-ASCII character is
  /// replaced by '?'.
  virtual bool key(std::string_view /*name*/) { return true; }
  virtual bool text(std::string_view /*value*/) { return true; }
  virtual bool whole_number(std::uint64_t /*value*/) { return true; }
  /// Receives a number that is negative or not an integer. `text` is the number as it is written in
  /// the input, or "0" for -Infinity.
  virtual bool number(std::string_view /*text*/) { return other_value(); }
  /// Called for true, false and null, and for numbers if number() is not overridden.
  virtual bool other_value() { return true; }
};

/// What is no JSON, but can be read without doubt. Programs that write JSON without a library write
/// such text.
enum class json_repair : std::uint8_t {
  byte_order_mark,  ///< the bytes EF BB BF at the beginning
  encoding,         ///< bytes in a text that are not UTF-8
  control_byte,     ///< a byte below 0x20 in a text, which is kept
  escape,           ///< a backslash in a text, as in paths of Windows, which stands for itself
  word,             ///< nan, inf or another number that JSON lacks
  comma,            ///< a comma too many, or none between two elements
  open_array        ///< the outermost value is an array, and the text ends before its ']'
};
inline constexpr std::array all_json_repairs{
    json_repair::byte_order_mark, json_repair::encoding, json_repair::control_byte,
    json_repair::escape,          json_repair::word,     json_repair::comma,
    json_repair::open_array};

/// How often a text had to be repaired.
class json_repairs {
 public:
  void add(json_repair what) noexcept { ++counts_[static_cast<std::size_t>(what)]; }
  std::uint64_t of(json_repair what) const noexcept {
    return counts_[static_cast<std::size_t>(what)];
  }

 private:
  std::array<std::uint64_t, all_json_repairs.size()> counts_{};
};

/// A change that is needed to make the text valid JSON.
struct json_edit {
  std::uint64_t at;       ///< offset in the text
  std::uint64_t removed;  ///< number of bytes that `text` replaces
  std::string text;
};
/// If a text needs more changes and they are wanted, it is refused, because they would take too
/// much memory.
inline constexpr std::size_t max_json_edits = 1'000'000;

/// Reads one JSON value; memory use depends only on its longest text and its depth. Accepts what
/// profilers write: NaN, Infinity and -Infinity are numbers, and texts need not be UTF-8.
/// @param repairs  counts what was repaired; if it is null, nothing is.
/// @param edits    receives, in the order of the text, the changes that make it valid JSON; may be
///                 null.
/// @return description and position of an error; nullopt if the value was read completely or `to`
/// has ended the reading. Throws input_error if the stream cannot be read.
std::optional<std::string> stream_json(byte_stream& in, json_events& to,
                                       json_repairs* repairs = nullptr,
                                       std::vector<json_edit>* edits = nullptr);

/// Parses `text`. Bytes that are not UTF-8 become %XX. Throws input_error with `path` and the line
/// of the error.
nlohmann::json parse_json(const std::string& path, std::string_view text);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_FORMATS_JSON_READER_HPP
