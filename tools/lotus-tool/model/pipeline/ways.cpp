#include "model/pipeline/ways.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "model/run_model.hpp"

namespace lotus::tool {

std::vector<std::uint32_t> next_makings(const run_batches& batches) {
  const std::vector<making_span>& all = batches.making();
  // Those of one item, or of one batch, in order of start; an item that no batch took is by itself.
  using owner = std::tuple<std::uint32_t, bool, std::uint32_t, std::int64_t, std::uint32_t>;
  std::map<owner, std::vector<std::uint32_t>> ways;
  const auto owner_of = [](const making_span& s) {
    const bool own = s.of_item || s.batch == no_making;
    return own ? owner{s.batch, true, s.consumer, s.number, s.pass}
               : owner{s.batch, false, 0, 0, 0};
  };
  for (std::uint32_t m = 0; m < all.size(); ++m) ways[owner_of(all[m])].push_back(m);
  for (auto& [who, way] : ways) {
    std::stable_sort(way.begin(), way.end(), [&all](std::uint32_t a, std::uint32_t b) {
      return all[a].start_ns < all[b].start_ns;
    });
  }
  const auto next_of = [&](const owner& who, std::int64_t end_ns) {
    const auto way = ways.find(who);
    if (way == ways.end()) return no_making;
    const auto at =
        std::lower_bound(way->second.begin(), way->second.end(), end_ns,
                         [&all](std::uint32_t m, std::int64_t ns) { return all[m].start_ns < ns; });
    return at == way->second.end() ? no_making : *at;
  };
  std::vector<std::uint32_t> next(all.size(), no_making);
  for (std::uint32_t m = 0; m < all.size(); ++m) {
    const making_span& s = all[m];
    // One that takes no time would be its own successor.
    const std::int64_t end_ns = std::max(s.end_ns(), s.start_ns + 1);
    next[m] = next_of(owner_of(s), end_ns);
    if (next[m] == no_making && s.of_item && s.batch != no_making) {
      next[m] = next_of(owner{s.batch, false, 0, 0, 0}, end_ns);
    }
  }
  return next;
}

}  // namespace lotus::tool
