// Collects the labels in the tables that a command prints, so that the command can explain them
// after its output.
#ifndef LOTUS_TOOL_BASE_TERMINAL_LABELS_HPP
#define LOTUS_TOOL_BASE_TERMINAL_LABELS_HPP

#include <algorithm>
#include <ios>
#include <ostream>
#include <string>
#include <vector>

namespace lotus::tool {
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

#endif  // LOTUS_TOOL_BASE_TERMINAL_LABELS_HPP
