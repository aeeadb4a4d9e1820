#include "model/calls/nesting_times.hpp"

#include <iterator>

namespace lotus::tool {
namespace {

// The maximum number of operations that are kept in memory because their parent may still follow in
// the log. Real programs do not have more operations directly inside one operation.
constexpr std::size_t max_ended = std::size_t{1} << 16U;
constexpr std::ptrdiff_t far_distance = 64;

}  // namespace

std::int64_t nesting_times::self_ns(std::int64_t start_ns, std::int64_t duration_ns,
                                    std::int64_t worked_ns) {
  const span next{start_ns, duration_ns, worked_ns};
  if (!tree_.empty()) return self_in_tree_ns(next);
  if (ended_.size() == max_ended) ended_.erase(ended_.begin(), ended_.begin() + max_ended / 2);
  auto first = ended_.end();
  while (first != ended_.begin() && (first - 1)->start_ns >= start_ns) --first;
  std::int64_t inside_ns = 0;
  auto last = first;
  for (; last != ended_.end() && last->end_ns() <= next.end_ns(); ++last) {
    inside_ns += last->worked_ns;
  }
  const bool is_far = ended_.end() - last > far_distance;
  if (first == last) {
    ended_.insert(first, next);
  } else {
    *first = next;
    ended_.erase(first + 1, last);
  }
  if (is_far) {
    for (const span& s : ended_) tree_.emplace_hint(tree_.end(), s.start_ns, s);
    ended_.clear();
  }
  return std::max<std::int64_t>(0, worked_ns - inside_ns);
}

std::int64_t nesting_times::self_in_tree_ns(const span& next) {
  if (tree_.size() == max_ended)
    tree_.erase(tree_.begin(), std::next(tree_.begin(), max_ended / 2));
  const auto first = tree_.lower_bound(next.start_ns);
  std::int64_t inside_ns = 0;
  auto last = first;
  for (; last != tree_.end() && last->second.end_ns() <= next.end_ns(); ++last) {
    inside_ns += last->second.worked_ns;
  }
  tree_.emplace_hint(tree_.erase(first, last), next.start_ns, next);
  return std::max<std::int64_t>(0, next.worked_ns - inside_ns);
}

}  // namespace lotus::tool
