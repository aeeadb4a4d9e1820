#include "base/formats/json_reader.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/errors.hpp"
#include "base/files/byte_stream.hpp"
#include "base/printable.hpp"

namespace lotus::tool {
namespace {

using nlohmann::json;

/// Converts a stream to bytes for the parser, which is strict. The number of bytes stays the same,
/// but each byte of a non-ASCII character becomes '?', and NaN or Infinity becomes a 0 followed by
/// blanks.
class lenient_bytes {
 public:
  explicit lenient_bytes(byte_stream& in) : in_(in) {}

  bool at_end() const noexcept { return in_.at_end() && rest_.empty(); }

  char take() {
    const char c = in_.take();
    if (in_text_) return of_text(c);
    if (!rest_.empty()) return of_word(c);
    if (c == '"') in_text_ = true;
    if ((c == 'N' || c == 'I') && value_may_begin()) {
      rest_ = c == 'N' ? "aN" : "nfinity";
      last_ = '0';
      return '0';
    }
    last_ = c;
    return c;
  }

 private:
  static constexpr char no_json = '\x01';

  char of_text(char c) noexcept {
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      in_text_ = false;
      last_ = c;
    }
    return static_cast<unsigned char>(c) < 0x80U ? c : '?';
  }
  char of_word(char c) noexcept {
    if (c != rest_.front()) {
      rest_ = {};
      return no_json;
    }
    rest_.remove_prefix(1);
    return ' ';
  }
  bool value_may_begin() const noexcept {
    return std::string_view(" \t\r\n[,:-").find(last_) != std::string_view::npos;
  }

  byte_stream& in_;
  std::string_view rest_;  ///< rest of a word that is replaced by a number
  char last_ = ' ';        ///< the last byte outside of texts
  bool in_text_ = false;
  bool escaped_ = false;
};

/// The parser compares, dereferences and increments once per byte; dereferencing consumes the byte.
struct byte_iterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  char operator*() const { return from->take(); }
  byte_iterator& operator++() noexcept { return *this; }
  bool operator!=(const byte_iterator& /*end*/) const noexcept { return !from->at_end(); }

  lenient_bytes* from = nullptr;
};

/// The library's description of the error, without its code, the position and what was read.
std::string reason_of(const json::exception& error) {
  std::string_view text = error.what();
  const auto from = [&text](std::string_view mark) {
    const std::size_t at = text.find(mark);
    if (at != std::string_view::npos) text.remove_prefix(at + mark.size());
  };
  from("] ");
  from("syntax error ");
  return std::string(text.substr(0, text.find("; last read")));
}

class event_sax final : public json::json_sax_t {
 public:
  explicit event_sax(json_events& to) : to_(to) {}

  bool null() override { return to_.other_value(); }
  bool boolean(bool /*value*/) override { return to_.other_value(); }
  bool number_integer(number_integer_t /*value*/) override { return to_.other_value(); }
  bool number_unsigned(number_unsigned_t value) override { return to_.whole_number(value); }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override {
    return to_.other_value();
  }
  bool string(string_t& value) override { return to_.text(value); }
  bool binary(binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t /*size*/) override { return to_.begin_object(); }
  bool key(string_t& name) override { return to_.key(name); }
  bool end_object() override { return to_.end_object(); }
  bool start_array(std::size_t /*size*/) override { return to_.begin_array(); }
  bool end_array() override { return to_.end_array(); }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const json::exception& error) override {
    wrong = reason_of(error) + " at byte " + std::to_string(position);
    return false;
  }

  std::optional<std::string> wrong;

 private:
  json_events& to_;
};

}  // namespace

std::optional<std::string> stream_json(byte_stream& in, json_events& to) {
  lenient_bytes bytes(in);
  event_sax sax(to);
  json::sax_parse(byte_iterator{&bytes}, byte_iterator{}, &sax);
  return sax.wrong;
}

json parse_json(const std::string& path, std::string_view text) {
  const std::string valid = printable(text);
  try {
    return json::parse(valid);
  } catch (const json::parse_error& error) {
    const auto end =
        valid.begin() + static_cast<std::ptrdiff_t>(std::min(error.byte, valid.size()));
    const auto line = static_cast<std::size_t>(std::count(valid.begin(), end, '\n')) + 1;
    throw input_error(at_line(path, line, reason_of(error)));
  } catch (const json::exception& error) {  // a number that does not fit into a double
    throw input_error(path + ": " + reason_of(error));
  }
}

}  // namespace lotus::tool
