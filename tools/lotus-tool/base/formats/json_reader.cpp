#include "base/formats/json_reader.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/errors.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"

namespace lotus::tool {
namespace {

using nlohmann::json;

/// Reads the bytes of a stream as JSON. Works directly on the stream's buffer for speed, because
/// profilers write traces of gigabytes.
class token_reader {
 public:
  token_reader(byte_stream& in, json_events& to, json_repairs* repairs,
               std::vector<json_edit>* edits)
      : in_(in), to_(to), repairs_(repairs), edits_(edits) {}

  /// Reads the whole JSON text. Returns false if a function of json_events returned false, or if
  /// the text is not valid JSON; `wrong` then contains the description of the error.
  bool read() {
    skip_byte_order_mark();
    if (!value()) return false;
    while (!open_.empty()) {
      const std::optional<char> c = peek();
      const bool object = open_.back() == '{';
      if (c == (object ? '}' : ']')) {
        if (!close()) return false;
      } else if (c == ',') {
        const std::uint64_t comma_at = in_.taken();
        in_.skip(1);
        if (!element(object, comma_at)) return false;
      } else if (!c && open_ == "[" && repair(json_repair::open_array, {in_.taken(), 0, "]"})) {
        return close();
      } else if (c == (object ? '"' : '{') && repair(json_repair::comma, {in_.taken(), 0, ","})) {
        if (!element(object, 0)) return false;
      } else {
        return fail(c);
      }
    }
    const std::optional<char> c = peek();
    return !c || fail(c);
  }

  std::optional<std::string> wrong;

 private:
  static bool is_blank(char c) noexcept { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
  static bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

  /// Skips blanks and returns the byte after them without consuming it; nullopt at the end of the
  /// stream.
  std::optional<char> peek() {
    while (!in_.at_end()) {
      const std::string_view text = in_.buffered();
      std::size_t n = 0;
      while (n < text.size() && is_blank(text[n])) ++n;
      if (n < text.size()) {
        const char c = text[n];
        if (n > 0) in_.skip(n);
        return c;
      }
      in_.skip(n);
    }
    return std::nullopt;
  }

  bool fail(std::string what) {
    if (!wrong) wrong = std::move(what) + " at byte " + std::to_string(in_.taken() + 1);
    return false;
  }
  bool fail(std::optional<char> c) {
    if (!c) return fail(std::string("unexpected end of input"));
    const auto byte = static_cast<unsigned char>(*c);
    if (byte > 0x20U && byte < 0x7FU) return fail(std::string("unexpected '") + *c + "'");
    return fail(std::string("unexpected byte ") + std::to_string(byte));
  }
  std::optional<char> next_byte() const {
    return in_.at_end() ? std::nullopt : std::optional(in_.buffered().front());
  }

  /// Counts a repair. Returns false if nothing may be repaired.
  bool repair(json_repair what, json_edit change) {
    if (repairs_ == nullptr) return false;
    repairs_->add(what);
    return edit(std::move(change));
  }
  bool edit(json_edit change) {
    if (edits_ == nullptr) return true;
    if (edits_->size() == max_json_edits) return fail(std::string("too much to repair"));
    edits_->push_back(std::move(change));
    return true;
  }

  void skip_byte_order_mark() {
    constexpr std::string_view mark = "\xEF\xBB\xBF";
    if (in_.buffered().substr(0, mark.size()) != mark ||
        !repair(json_repair::byte_order_mark, {0, mark.size(), {}})) {
      return;
    }
    in_.skip(mark.size());
  }

  /// Reads what comes after the comma at `comma_at`. If this is another comma, or the end of the
  /// object or array, the comma is too many.
  bool element(bool object, std::uint64_t comma_at) {
    const std::optional<char> c = peek();
    if (!c || *c == ',' || *c == (object ? '}' : ']')) {
      return repair(json_repair::comma, {comma_at, 1, {}}) || fail(c);
    }
    return (!object || member_name()) && value();
  }

  bool close() {
    if (!in_.at_end()) in_.skip(1);
    const bool object = open_.back() == '{';
    open_.pop_back();
    return object ? to_.end_object() : to_.end_array();
  }

  /// Reads the name of an object's member and the colon after it.
  bool member_name() {
    if (const std::optional<char> c = peek(); c != '"') return fail(c);
    std::string_view name;
    if (!quoted(name) || !to_.key(name)) return false;
    if (const std::optional<char> c = peek(); c != ':') return fail(c);
    in_.skip(1);
    return true;
  }

  /// Reads up to the end of the next value that contains no other value, for example a number, a
  /// text or an empty array. Also reads the opening brackets of the objects and arrays around it.
  bool value() {
    // A loop instead of recursion, because deeply nested brackets would exhaust the stack.
    for (;;) {
      const std::optional<char> c = peek();
      if (c == '[' || c == '{') {
        const bool object = c == '{';
        in_.skip(1);
        open_ += *c;
        if (!(object ? to_.begin_object() : to_.begin_array())) return false;
        if (peek() == (object ? '}' : ']')) return close();
        if (object && !member_name()) return false;
        continue;
      }
      if (c == '"') {
        std::string_view text;
        return quoted(text) && to_.text(text);
      }
      if (c == 't') return word("true") && to_.other_value();
      if (c == 'f') return word("false") && to_.other_value();
      return c ? number_or_word(*c) : fail(c);
    }
  }

  bool word(std::string_view expected) {
    for (const char c : expected) {
      if (next_byte() != c) return fail(next_byte());
      in_.skip(1);
    }
    return true;
  }

  bool number_or_word(char first) {
    const std::string_view text = in_.buffered();
    const char second = text.size() > 1 ? text[1] : ' ';
    const bool is_number = is_digit(first) || (first == '-' && is_digit(second));
    // Words are rare. If the buffer ends too early to see whether this is one, it is read as one.
    return is_number ? number() : other_word();
  }

  /// Reads null, and what stands for a number but is none in JSON, such as NaN, -inf or .5.
  bool other_word() {
    parts_.clear();
    const std::uint64_t at = in_.taken();
    for (std::optional<char> c = next_byte(); c && is_of_word(*c); c = next_byte()) {
      parts_ += *c;
      in_.skip(1);
    }
    if (parts_ == "null") return to_.other_value();
    const auto change_to = [&](std::string with) {
      return json_edit{at, parts_.size(), std::move(with)};
    };
    if (parts_ == "NaN" || parts_ == "Infinity")
      return edit(change_to("null")) && to_.whole_number(0);
    if (parts_ == "-Infinity" || parts_ == "-NaN")
      return edit(change_to("null")) && to_.number("0");
    if (!parts_.empty() && is_number(parts_)) return to_.number(parts_);
    std::string_view text = parts_;
    if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
    if (!text.empty() && (text[0] == '.' || is_digit(text[0]))) {
      const std::string valid = number_of_c(parts_);
      if (!valid.empty() && repair(json_repair::word, change_to(valid))) return to_.number(parts_);
    }
    if (const std::string_view valid = word_of_json(text);
        !valid.empty() && repair(json_repair::word, change_to(std::string(valid)))) {
      return to_.other_value();
    }
    if (parts_.empty()) return fail(next_byte());
    wrong = "unexpected '" + parts_.substr(0, 40) + "' at byte " + std::to_string(at + 1);
    return false;
  }

  static bool is_of_word(char c) noexcept {
    return is_of_number(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '#' ||
           c == '(' || c == ')' || c == '_';
  }

  /// Returns JSON's word for what a program prints, without a sign, for a truth value, or for a
  /// value that is no number: nan, nan(ind), inf, INFINITY, 1.#IND, None, undefined. Returns an
  /// empty text for other words.
  static std::string_view word_of_json(std::string_view text) {
    std::string lower(text);
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (lower == "true") return "true";
    if (lower == "false") return "false";
    const bool is_null = lower.compare(0, 3, "nan") == 0 || lower.compare(0, 3, "inf") == 0 ||
                         lower.compare(0, 3, "1.#") == 0 || lower == "none" || lower == "undefined";
    return is_null ? "null" : "";
  }

  /// Returns as JSON a number that C reads, but JSON does not, such as .5, +1, 2. or 007; an empty
  /// text if it is none.
  static std::string number_of_c(std::string_view text) {
    const char* const end = text.data() + text.size();
    double value = 0;
    const auto [at, error] =
        std::from_chars(text.data() + (text.front() == '+' ? 1 : 0), end, value);
    if (at != end) return {};
    if (error != std::errc()) return "null";  // too large for a double
    std::array<char, 32> digits{};
    return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
  }

  bool number() {
    const std::uint64_t at = in_.taken();
    // Fast path for nearly all numbers: if the whole number is in the buffer, it is read there
    // without copying it.
    const std::string_view text = in_.buffered();
    std::size_t n = 0;
    while (n < text.size() && is_of_number(text[n])) ++n;
    if (n < text.size()) {
      // The buffer has at least one more byte after the number. Therefore skip() does not refill
      // the buffer, and the number stays valid.
      return check_number(at, text.substr(0, n), [this, n] { in_.skip(n); });
    }
    parts_.clear();
    for (std::optional<char> c = next_byte(); c && is_of_number(*c); c = next_byte()) {
      parts_ += *c;
      in_.skip(1);
    }
    return check_number(at, parts_, [] {});
  }

  static bool is_of_number(char c) noexcept {
    return is_digit(c) || c == '-' || c == '.' || c == 'e' || c == 'E' || c == '+';
  }

  template <class Consume>
  bool check_number(std::uint64_t at, std::string_view text, Consume consume) {
    std::uint64_t whole = 0;
    const bool has_leading_zero = text.size() > 1 && text[0] == '0' && is_digit(text[1]);
    if (!has_leading_zero && read_whole(text, whole)) {
      consume();
      return to_.whole_number(whole);
    }
    if (!is_number(text)) {
      const std::string valid = number_of_c(text);
      if (valid.empty() || !repair(json_repair::word, {at, text.size(), valid})) {
        return fail("'" + std::string(text.substr(0, 40)) + "' is no number");
      }
    }
    consume();
    return to_.number(text);
  }

  static bool is_number(std::string_view text) noexcept {
    std::size_t at = 0;
    const auto digits = [&] {
      const std::size_t from = at;
      while (at < text.size() && is_digit(text[at])) ++at;
      return at > from;
    };
    const auto one_of = [&](std::string_view set) {
      const bool is = at < text.size() && set.find(text[at]) != std::string_view::npos;
      if (is) ++at;
      return is;
    };
    one_of("-");
    if (one_of("0")) {
      if (at < text.size() && is_digit(text[at])) return false;
    } else if (!digits()) {
      return false;
    }
    if (one_of(".") && !digits()) return false;
    if (one_of("eE")) {
      one_of("+-");
      if (!digits()) return false;
    }
    return at == text.size();
  }

  /// Whether this byte is ASCII and needs no escape in a JSON string.
  static bool is_plain(char c) noexcept {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20U && byte < 0x80U && c != '"' && c != '\\';
  }

  /// Reads a string with its quotes.
  /// @param found  the text without quotes; valid until the next call, or until bytes are consumed.
  bool quoted(std::string_view& found) {
    in_.skip(1);
    const std::string_view text = in_.buffered();
    std::size_t n = 0;
    while (n < text.size() && is_plain(text[n])) ++n;
    if (n + 1 < text.size() && text[n] == '"') {
      in_.skip(n + 1);  // leaves a byte in the buffer, so `found` stays valid
      found = text.substr(0, n);
      return true;
    }
    parts_.clear();
    std::string foreign;  // the last bytes, if they are not ASCII
    for (std::optional<char> c = next_byte(); c; c = next_byte()) {
      const auto byte = static_cast<unsigned char>(*c);
      if (byte >= 0x80U) {
        foreign += *c;
      } else if (!foreign.empty()) {
        if (!check_encoding(foreign)) return false;
        foreign.clear();
      }
      if (byte < 0x20U && !repair(json_repair::control_byte, {in_.taken(), 1, json_escape(byte)})) {
        return fail(c);
      }
      in_.skip(1);
      if (*c == '"') {
        found = parts_;
        return true;
      }
      if (*c != '\\') {
        parts_ += byte < 0x80U ? *c : '?';
      } else if (!escape()) {
        return false;
      }
    }
    return fail(std::nullopt);
  }

  /// Repairs the bytes before the current one if they are not UTF-8.
  bool check_encoding(const std::string& bytes) {
    std::string valid = printable(bytes);
    return repairs_ == nullptr || valid == bytes ||
           repair(json_repair::encoding,
                  {in_.taken() - bytes.size(), bytes.size(), std::move(valid)});
  }

  static std::string json_escape(unsigned char byte) {
    constexpr std::string_view hex = "0123456789abcdef";
    return std::string("\\u00") + hex[byte >> 4U] + hex[byte & 15U];
  }

  /// Reads the rest of an escape sequence, after its backslash.
  bool escape() {
    constexpr std::string_view codes = "\"\\/bfnrt";
    constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
    const std::optional<char> c = next_byte();
    if (!c) return fail(c);
    if (*c == 'u') {
      in_.skip(1);
      return unicode();
    }
    const std::size_t which = codes.find(*c);
    if (which == std::string_view::npos) {
      if (!repair(json_repair::escape, {in_.taken() - 1, 0, "\\"})) return fail(c);
      parts_ += '\\';
      return true;
    }
    in_.skip(1);
    parts_ += meanings[which];
    return true;
  }

  /// Reads the four digits of \uXXXX. Replaces characters that are not ASCII by '?'.
  bool unicode() {
    unsigned code = 0;
    const std::size_t begun = parts_.size();
    parts_ += "\\u";
    for (unsigned i = 0; i < 4; ++i) {
      const std::optional<char> c = next_byte();
      constexpr std::string_view digits = "0123456789abcdef0123456789ABCDEF";
      const std::size_t digit = c ? digits.find(*c) : std::string_view::npos;
      if (digit == std::string_view::npos) {
        return (c && repair(json_repair::escape, {in_.taken() - 2 - i, 0, "\\"})) || fail(c);
      }
      parts_ += *c;
      code = code * 16U + static_cast<unsigned>(digit % 16U);
      in_.skip(1);
    }
    parts_.resize(begun);
    parts_ += code < 0x80U ? static_cast<char>(code) : '?';
    return true;
  }

  byte_stream& in_;
  json_events& to_;
  json_repairs* repairs_;
  std::vector<json_edit>* edits_;
  std::string open_;   ///< opening brackets that are not closed yet
  std::string parts_;  ///< copy of a text or number that the buffer does not contain literally
};

/// Returns the description that the library nlohmann/json gives for an error, without the error
/// code, the position and the input that it also contains.
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

}  // namespace

std::optional<std::string> stream_json(byte_stream& in, json_events& to, json_repairs* repairs,
                                       std::vector<json_edit>* edits) {
  token_reader reader(in, to, repairs, edits);
  reader.read();
  return reader.wrong;
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
    // The JSON library throws this exception, for example, if a number does not fit into a double.
  } catch (const json::exception& error) {
    throw input_error(path + ": " + reason_of(error));
  }
}

}  // namespace lotus::tool
