#include "model/calls/nesting_times.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace lotus::tool {

std::int64_t nesting_times::self_ns(std::int64_t start_ns, std::int64_t duration_ns,
                                    std::int64_t worked_ns) {
  // Without any parent this would grow with the log; nothing nests this wide.
  constexpr std::size_t most = std::size_t{1} << 16U;
  if (ended_.size() == most) ended_.erase(ended_.begin(), ended_.begin() + most / 2);
  auto first = ended_.end();
  while (first != ended_.begin() && (first - 1)->start_ns >= start_ns) --first;
  std::int64_t inside_ns = 0;
  auto last = first;
  for (; last != ended_.end() && last->end_ns() <= start_ns + duration_ns; ++last) {
    inside_ns += last->worked_ns;
  }
  if (first == last) {
    ended_.insert(first, {start_ns, duration_ns, worked_ns});
  } else {
    *first = {start_ns, duration_ns, worked_ns};
    ended_.erase(first + 1, last);
  }
  return std::max<std::int64_t>(0, worked_ns - inside_ns);
}

}  // namespace lotus::tool
