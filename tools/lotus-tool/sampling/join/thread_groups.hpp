// Groups the threads of a run by name, with the samples of each group.
#ifndef LOTUS_TOOL_SAMPLING_JOIN_THREAD_GROUPS_HPP
#define LOTUS_TOOL_SAMPLING_JOIN_THREAD_GROUPS_HPP

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lotus::tool {

/// Number and summed value of samples of the event joined_run::event. Shares are computed from
/// values, because sampling rates may differ.
struct joined_samples {
  std::uint64_t samples = 0;
  std::uint64_t value = 0;  ///< sum of the samples' values, in the event's unit: ns, cycles, …

  joined_samples& operator+=(const joined_samples& more) noexcept;
  /// Returns the member `value` of this object as a share (0..1) of the member `value` of `all`.
  double share_of(const joined_samples& all) const noexcept;
};

/// Threads with the same name except for a number at its end, such as those of a thread pool.
struct thread_group {
  bool recorded = false;        ///< whether the threads recorded scopes or batches
  std::set<std::string> names;  ///< names of the threads; "" for an unknown name
  std::set<std::uint32_t> tids{};
  joined_samples total{};

  /// Returns a text such as "av:h264", or "av:h264:df*" if the threads have different names.
  std::string name() const;
  /// Returns a text such as "4 threads named av:h264:df*, without operations".
  std::string description() const;
};

class thread_groups {
 public:
  void count(std::uint32_t tid, std::string_view name, bool recorded, const joined_samples& more);

  /// Returns the groups, the group with the largest value first.
  std::vector<thread_group> sorted() const;

 private:
  std::map<std::pair<bool, std::string>, thread_group> groups_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_SAMPLING_JOIN_THREAD_GROUPS_HPP
