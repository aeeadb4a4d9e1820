// Which labels tables had, so that what they mean can be told.
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

/// As long as it lives it takes the labels of the tables that are printed to a stream: heads of
/// columns, and what heads the rows of facts. The stream must outlive it.
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
  /// Each once, in the order in which they were printed.
  const std::vector<std::string>& all() const noexcept { return all_; }

 private:
  std::ostream& stream_;
  std::vector<std::string> all_;
};

/// Nothing where nobody takes them.
inline void note_label(std::ostream& stream, const std::string& label) {
  auto* const notes = static_cast<noted_labels*>(stream.pword(internal::labels_index()));
  if (notes != nullptr) notes->add(label);
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_TERMINAL_LABELS_HPP
