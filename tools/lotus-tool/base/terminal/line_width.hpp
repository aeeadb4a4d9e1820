// Stores the maximum width of a stream's lines and the labels of its tables, and breaks or shortens
// text to this width.
#ifndef LOTUS_TOOL_BASE_TERMINAL_LINE_WIDTH_HPP
#define LOTUS_TOOL_BASE_TERMINAL_LINE_WIDTH_HPP

#include <algorithm>
#include <cstddef>
#include <ios>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace lotus::tool {

/// Sets the maximum width of a stream's lines in columns; 0, the default, is unlimited. Called by
/// main(), which knows whether the stream is a terminal and whether --wide was given.
void set_line_width(std::ostream& stream, std::size_t columns);
std::size_t line_width(std::ostream& stream);

/// Returns how many columns a UTF-8 text takes on a terminal, assuming one for each character.
std::size_t columns_of(std::string_view text);

/// Returns `text` unchanged if it is not wider than `columns`. Otherwise shortens it to this width:
/// "…" replaces its middle.
std::string without_middle(std::string_view text, std::size_t columns);

/// Breaks a text into lines of at most `columns` (0: one line). The first line begins with `first`,
/// all others with `others`; the last line has no line end. A number stays on one line with its
/// unit, and no word is broken, so a word that is longer than a line gets its own line.
std::string in_lines(std::string_view text, std::size_t columns, std::string_view first = "",
                     std::string_view others = "");

/// Returns the text, broken into lines that are not wider than line_width(stream).
inline std::string fitted(std::ostream& stream, std::string_view text, std::string_view first = "",
                          std::string_view others = "") {
  return in_lines(text, line_width(stream), first, others);
}

/// Returns the same as fitted(), but every sentence begins on a new line, so that it can be read
/// alone. If lines are narrower than 80 columns or their width is unlimited, sentences follow each
/// other, to save lines. A sentence ends at a '.' before a blank and an uppercase letter or a
/// quote.
std::string fitted_sentences(std::ostream& stream, std::string_view text,
                             std::string_view first = "", std::string_view others = "");

/// Print such lines, with a line end after the last one.
inline void print_fitted(std::ostream& stream, std::string_view text, std::string_view first = "",
                         std::string_view others = "") {
  stream << fitted(stream, text, first, others) << '\n';
}
inline void print_sentences(std::ostream& stream, std::string_view text,
                            std::string_view first = "", std::string_view others = "") {
  stream << fitted_sentences(stream, text, first, others) << '\n';
}

namespace internal {

inline int labels_index() {
  static const int index = std::ios_base::xalloc();
  return index;
}

}  // namespace internal

/// Collects the labels of all tables that are printed to a stream while the object exists: column
/// heads, and in tables of the form `facts` the first cell of each row. The stream must outlive
/// this object.
class noted_labels {
 public:
  explicit noted_labels(std::ostream& stream) : stream_(stream) {
    stream_.pword(internal::labels_index()) = this;
  }
  noted_labels(const noted_labels&) = delete;
  noted_labels& operator=(const noted_labels&) = delete;
  ~noted_labels() { stream_.pword(internal::labels_index()) = nullptr; }

  void add(const std::string& label) {
    if (label.empty() || std::find(all_.begin(), all_.end(), label) != all_.end()) return;
    all_.push_back(label);
  }
  /// Returns each label once, in the order of printing.
  const std::vector<std::string>& all() const noexcept { return all_; }

 private:
  std::ostream& stream_;
  std::vector<std::string> all_;
};

/// Adds a label to the noted_labels object of the stream. Does nothing if no such object exists for
/// the stream.
inline void note_label(std::ostream& stream, const std::string& label) {
  auto* const notes = static_cast<noted_labels*>(stream.pword(internal::labels_index()));
  if (notes != nullptr) notes->add(label);
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_TERMINAL_LINE_WIDTH_HPP
