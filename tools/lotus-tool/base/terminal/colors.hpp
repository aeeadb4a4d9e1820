// Provides colors and bold text for streams that allow them.
#ifndef LOTUS_TOOL_BASE_TERMINAL_COLORS_HPP
#define LOTUS_TOOL_BASE_TERMINAL_COLORS_HPP

#include <ios>
#include <ostream>
#include <string>
#include <string_view>

namespace lotus::tool {

enum class style : unsigned char { bold, red, yellow, green };

namespace internal {

inline int color_index() {
  static const int index = std::ios_base::xalloc();
  return index;
}

}  // namespace internal

/// Allows colors on `stream`; without this call, text has no colors. main() calls it if the stream
/// is a terminal and the user has not turned off colors.
inline void allow_colors(std::ostream& stream) {
  stream.iword(internal::color_index()) = 1;
}

inline bool has_colours(std::ostream& stream) {
  return stream.iword(internal::color_index()) != 0;
}

/// Returns `text` to be written to `stream`. If colors are allowed on the stream, the result has
/// the escape sequences of the style `as` (ECMA-48, SGR) around the text.
inline std::string styled(std::ostream& stream, style as, std::string_view text) {
  if (!has_colours(stream)) return std::string(text);
  constexpr std::string_view codes[] = {"1", "31", "33", "32"};
  return "\x1b[" + std::string(codes[static_cast<unsigned>(as)]) + 'm' + std::string(text) +
         "\x1b[0m";
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_TERMINAL_COLORS_HPP
