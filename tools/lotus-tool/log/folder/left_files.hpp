// Files that a command could not read, reported without repetition.
#ifndef LOTUS_TOOL_LOG_FOLDER_LEFT_FILES_HPP
#define LOTUS_TOOL_LOG_FOLDER_LEFT_FILES_HPP

#include <cstdint>
#include <map>
#include <string>

namespace lotus::tool {

/// For the files of one directory, reports the first of each kind and how many more there are.
class left_files {
 public:
  void add(const std::string& path, const std::string& why) {
    const auto [at, first] = by_kind_.try_emplace(why, kind{path, 0});
    if (!first) ++at->second.more;
  }
  bool empty() const noexcept { return by_kind_.empty(); }

  /// Calls `say(text)` for each kind.
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
