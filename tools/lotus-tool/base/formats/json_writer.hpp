// Writes JSON with its commas, escapes and number formats. All code that writes JSON uses this
// class.
#ifndef LOTUS_TOOL_BASE_FORMATS_JSON_WRITER_HPP
#define LOTUS_TOOL_BASE_FORMATS_JSON_WRITER_HPP

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/text.hpp"

namespace lotus::tool {

enum class json_style : std::uint8_t {
  compact,  ///< without blanks: {"a":1,"b":2}
  spaced    ///< with blanks as in Python: {"a": 1, "b": 2}
};

/// Appends JSON to a string of the caller, which must outlive the writer. Between any two calls,
/// the caller may write the string to a file and clear it, so output may be larger than memory.
/// Does not check that brackets match, so a caller may write only a part of an object. Not
/// thread-safe; throws only bad_alloc.
class json_writer {
 public:
  explicit json_writer(std::string& text, json_style style = json_style::compact) noexcept
      : text_(text), spaced_(style == json_style::spaced) {}

  /// From now on, pour() moves the text to `out`, which must outlive the writer.
  void pour_to(std::ostream& out) noexcept { out_ = &out; }
  /// If the text is long, writes it to the stream of pour_to(), so that output takes little memory.
  void pour() {
    constexpr std::size_t many_bytes = std::size_t{1} << 20U;
    if (out_ == nullptr || text_.size() < many_bytes) return;
    *out_ << text_;
    text_.clear();
  }

  json_writer& begin_object() { return open('{'); }
  json_writer& end_object() { return close('}'); }
  json_writer& begin_array() { return open('['); }
  json_writer& end_array() { return close(']'); }

  /// Writes a key. The next call must write its value.
  json_writer& key(std::string_view name) {
    separate();
    append_json_string(text_, name);
    text_ += ':';
    if (spaced_) text_ += ' ';
    comma_due_ = false;
    after_key_ = true;
    return *this;
  }

  /// Writes a text, an integer, a double in the shortest form that reads back as the same value
  /// (null if JSON cannot represent it), a bool, nullptr, or an optional of one of these.
  template <class Value>
  json_writer& value(const Value& value) {
    if constexpr (std::is_same_v<Value, std::nullptr_t>) {
      raw("null");
    } else if constexpr (std::is_convertible_v<const Value&, std::string_view>) {
      separate();
      append_json_string(text_, value);
    } else if constexpr (std::is_same_v<Value, bool>) {
      raw(value ? "true" : "false");
    } else if constexpr (std::is_integral_v<Value>) {
      static_assert(!std::is_same_v<Value, char>, "a text or a number?");
      char digits[20];
      raw({digits, static_cast<std::size_t>(put_integer(digits, value) - digits)});
    } else if constexpr (std::is_arithmetic_v<Value>) {
      static_assert(std::is_same_v<Value, double>, "a float has other shortest digits");
      raw(json_number(value));
    } else if (value) {
      this->value(*value);
    } else {
      this->value(nullptr);
    }
    return *this;
  }

  template <class Value>
  json_writer& member(std::string_view name, const Value& value) {
    key(name);
    return this->value(value);
  }

  /// Writes an array of these values.
  template <class... Values>
  json_writer& row(const Values&... values) {
    begin_array();
    (value(values), ...);
    return end_array();
  }
  /// Writes an array: calls `write` for each element of `all`.
  template <class Range, class Write>
  json_writer& list(const Range& all, const Write& write) {
    begin_array();
    for (const auto& one : all) write(one);
    return end_array();
  }
  template <class Range>
  json_writer& list(const Range& all) {
    return list(all, [this](const auto& one) { this->value(one); });
  }

  /// Writes a value that the caller has already formatted as JSON.
  json_writer& raw(std::string_view json) {
    separate();
    text_ += json;
    return *this;
  }

  /// Returns the caller's string, to append the rest of a long raw() value.
  std::string& text() noexcept { return text_; }

  /// Starts a new line before the next element or closing bracket.
  json_writer& newline(std::size_t indent = 0) noexcept {
    newline_ = true;
    indent_ = indent;
    return *this;
  }

 private:
  /// Writes the comma and the line break, if any, that must come before the next element.
  void separate() {
    if (comma_due_) text_ += ',';
    if (comma_due_ && spaced_ && !newline_) text_ += ' ';
    if (newline_ && !after_key_) break_line();
    comma_due_ = true;
    after_key_ = false;
  }
  void break_line() {
    text_ += '\n';
    text_.append(indent_, ' ');
    newline_ = false;
  }
  json_writer& open(char bracket) {
    separate();
    text_ += bracket;
    comma_due_ = false;
    return *this;
  }
  json_writer& close(char bracket) {
    if (newline_) break_line();
    text_ += bracket;
    comma_due_ = true;
    return *this;
  }

  std::string& text_;
  std::ostream* out_ = nullptr;
  std::size_t indent_ = 0;
  bool spaced_;
  bool newline_ = false;
  bool comma_due_ = false;
  bool after_key_ = false;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_FORMATS_JSON_WRITER_HPP
