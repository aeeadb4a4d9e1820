// Asks the child process that reads a module's symbols and debug info.
#ifndef LOTUS_TOOL_SAMPLING_READ_MODULE_QUESTIONS_HPP
#define LOTUS_TOOL_SAMPLING_READ_MODULE_QUESTIONS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace lotus::tool {

/// How much of a module can be read.
inline constexpr std::string_view unreadable = "unreadable";
inline constexpr std::string_view stripped = "stripped";

/// Writes texts and numbers into one text, and reads them again in the same order.
class module_fields {
 public:
  module_fields() = default;
  explicit module_fields(std::string text) : text_(std::move(text)) {}

  void add(std::string_view field) { text_.append(field).push_back('\0'); }
  void add(std::uint64_t number) { add(std::to_string(number)); }
  std::string take() { return std::move(text_); }

  bool at_end() const noexcept { return at_ >= text_.size(); }
  std::string next() {
    const std::size_t begin = std::min(at_, text_.size());
    const std::size_t end = std::min(text_.find('\0', begin), text_.size());
    at_ = end + 1;
    return text_.substr(begin, end - begin);
  }
  std::uint64_t next_number() { return std::strtoull(next().c_str(), nullptr, 10); }

 private:
  std::string text_;
  std::size_t at_ = 0;
};

/// The questions to the process that reads a module, each followed by an offset in the file.
inline constexpr std::string_view ask_state = "state";
inline constexpr std::string_view ask_place = "place";
inline constexpr std::string_view ask_frames = "frames";

/// Returns the function that answers these questions about one module. The answer to ask_state is
/// `unreadable`, `stripped` or "".
std::function<std::string(const std::string&)> module_reader(const std::string& path);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_SAMPLING_READ_MODULE_QUESTIONS_HPP
