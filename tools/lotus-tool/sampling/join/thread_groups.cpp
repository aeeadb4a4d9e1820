#include "sampling/join/thread_groups.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lotus::tool {
namespace {

/// Removes a number at a name's end: "av:h264:df3" -> "av:h264:df". Keeps a name of digits only.
std::string_view without_number(std::string_view name) {
  const std::size_t last = name.find_last_not_of("0123456789");
  return last == std::string_view::npos ? name : name.substr(0, last + 1);
}

}  // namespace

joined_samples& joined_samples::operator+=(const joined_samples& more) noexcept {
  samples += more.samples;
  value += more.value;
  return *this;
}

double joined_samples::share_of(const joined_samples& all) const noexcept {
  return all.value == 0 ? 0 : static_cast<double>(value) / static_cast<double>(all.value);
}

std::string thread_group::name() const {
  if (names.size() == 1) return *names.begin();
  return std::string(without_number(*names.begin())) + '*';
}

std::string thread_group::description() const {
  const std::size_t n = tids.size();
  std::string text = std::to_string(n) + (n == 1 ? " thread" : " threads");
  const std::string& first = *names.begin();
  if (first == "lotus-drain" || first == "lotus-sampler" || first == "lotus-waits") {
    return text + " of Lotus (" + name() + ')';
  }
  text += name().empty() ? " without a name" : " named " + name();
  return recorded ? text : text + ", without operations";
}

void thread_groups::count(std::uint32_t tid, std::string_view name, bool recorded,
                          const joined_samples& more) {
  thread_group& group = groups_[{recorded, std::string(without_number(name))}];
  group.recorded = recorded;
  group.names.emplace(name);
  group.tids.insert(tid);
  group.total += more;
}

std::vector<thread_group> thread_groups::sorted() const {
  std::vector<thread_group> all;
  all.reserve(groups_.size());
  for (const auto& [key, group] : groups_) all.push_back(group);
  std::stable_sort(all.begin(), all.end(), [](const thread_group& a, const thread_group& b) {
    return a.total.value > b.total.value;
  });
  return all;
}

}  // namespace lotus::tool
