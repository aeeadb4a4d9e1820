// Records which labels the printed tables contained, so that they can be explained.
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

/// During its lifetime, collects the labels of the tables printed to a stream: column heads, and
/// the first cells of rows of facts. The stream must outlive it.
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
  /// Each label once, in the order of printing.
  const std::vector<std::string>& all() const noexcept { return all_; }

 private:
  std::ostream& stream_;
  std::vector<std::string> all_;
};

/// Adds a label to the stream's noted_labels; does nothing if there is none.
inline void note_label(std::ostream& stream, const std::string& label) {
  auto* const notes = static_cast<noted_labels*>(stream.pword(internal::labels_index()));
  if (notes != nullptr) notes->add(label);
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_TERMINAL_LABELS_HPP
