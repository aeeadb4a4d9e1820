#include "base/terminal/line_width.hpp"

namespace lotus::tool {
namespace {

int width_index() {
  static const int index = std::ios_base::xalloc();
  return index;
}

bool starts_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Returns where the word that begins at position `at` ends. If the word ends in a digit, returns
/// the end of the next word, because a number and its unit, such as "12.4 batches/s", must stay on
/// one line.
std::size_t end_of_unbreakable(std::string_view text, std::size_t at) {
  for (std::size_t end = text.find(' ', at);; end = text.find(' ', end + 1)) {
    if (end == std::string_view::npos) return text.size();
    if (end == at || !is_digit(text[end - 1])) return end;
  }
}

}  // namespace

void set_line_width(std::ostream& stream, std::size_t columns) {
  stream.iword(width_index()) = static_cast<long>(columns);
}

std::size_t line_width(std::ostream& stream) {
  return static_cast<std::size_t>(stream.iword(width_index()));
}

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), starts_character));
}

std::string without_middle(std::string_view text, std::size_t columns) {
  const std::size_t wide = columns_of(text);
  if (wide <= columns || columns == 0) return std::string(text);
  const std::size_t before = (columns - 1) / 2;
  const std::size_t after = wide - (columns - 1 - before);
  std::string left;
  std::size_t character = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i > 0 && starts_character(text[i])) ++character;
    if (character == before && starts_character(text[i])) left += "…";
    if (character < before || character >= after) left += text[i];
  }
  return left;
}

std::string in_lines(std::string_view text, std::size_t columns, std::string_view first,
                     std::string_view others) {
  std::string lines(first);
  std::size_t used = columns_of(first);
  bool any = false;  // whether the current line already contains text
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = end_of_unbreakable(text, at);
    const std::string_view segment = text.substr(at, end - at);
    const std::size_t wide = columns_of(segment);
    if (any && columns > 0 && used + 1 + wide > columns) {
      lines.append("\n").append(others);
      used = columns_of(others);
      any = false;
    }
    if (any) lines += ' ';
    lines += segment;
    used += wide + (any ? 1 : 0);
    any = true;
    at = end + 1;
  }
  return lines;
}

std::string fitted_sentences(std::ostream& stream, std::string_view text, std::string_view first,
                             std::string_view others) {
  const std::size_t width = line_width(stream);
  constexpr std::size_t usual = 80;
  if (width < usual) return in_lines(text, width, first, others);
  std::string lines;
  std::size_t begin = 0;
  for (std::size_t at = text.find(". "); at != std::string_view::npos;
       at = text.find(". ", at + 1)) {
    const char next = at + 2 < text.size() ? text[at + 2] : ' ';
    if ((next < 'A' || next > 'Z') && next != '\'' && next != '`') continue;
    lines += in_lines(text.substr(begin, at + 1 - begin), width, first, others) + '\n';
    begin = at + 2;
  }
  return lines + in_lines(text.substr(begin), width, first, others);
}

}  // namespace lotus::tool
