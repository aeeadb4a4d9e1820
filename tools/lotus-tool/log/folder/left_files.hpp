// Reports which files a command could not read: one message for each reason, such as a missing
// permission.
#ifndef LOTUS_TOOL_LOG_FOLDER_LEFT_FILES_HPP
#define LOTUS_TOOL_LOG_FOLDER_LEFT_FILES_HPP

#include <cstdint>
#include <map>
#include <string>

namespace lotus::tool {

/// Collects the files of one directory that could not be read. For each reason, reports the first
/// file and how many other files have the same reason.
class left_files {
 public:
  void add(const std::string& path, const std::string& why) {
    const auto [at, first] = by_kind_.try_emplace(why, kind{path, 0});
    if (!first) ++at->second.more;
  }
  bool empty() const noexcept { return by_kind_.empty(); }

  /// Calls `say(text)` once for each reason, with the text to print.
  template <class Say>
  void tell(Say&& say) const {
    for (const auto& [why, k] : by_kind_) {
      say(k.path + (k.more == 0 ? "" : " and " + std::to_string(k.more) + " more") + ": " + why);
    }
  }

 private:
  struct kind {
    std::string path;
    std::uint64_t more;
  };
  std::map<std::string, kind> by_kind_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LOG_FOLDER_LEFT_FILES_HPP
