#include "model/pipeline/slot_shares.hpp"

#include <algorithm>
#include <map>

#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

struct window {
  std::int64_t first_ns = INT64_MAX;
  std::int64_t last_start_ns = INT64_MIN;
  std::int64_t last_ns = INT64_MIN;
};

/// The state of a stage during an interval in which it does not change.
struct moment {
  std::int64_t length_ns;
  std::size_t busy;
  std::size_t unfetched;  ///< number of finished items that the next stage has not fetched yet
  bool ready;             ///< whether the item that starts next is ready
  bool starts_more;       ///< whether another item will start in this epoch
};

bool is_source(const std::vector<passage>& passages) {
  const auto from_nowhere =
      std::count_if(passages.begin(), passages.end(), [](const passage& p) { return !p.ready_ns; });
  return 2 * static_cast<std::size_t>(from_nowhere) > passages.size();
}

/// Returns the time ranges in which a stage works: one range for each epoch. Ranges of epochs that
/// overlap are joined to one.
std::vector<window> windows_of(const std::vector<passage>& passages) {
  std::map<std::uint32_t, window> of_epoch;
  for (const passage& p : passages) {
    window& w = of_epoch[p.epoch];
    w.first_ns = std::min(w.first_ns, p.start_ns);
    w.last_start_ns = std::max(w.last_start_ns, p.start_ns);
    w.last_ns = std::max(w.last_ns, p.end_ns);
  }
  std::vector<window> all;
  all.reserve(of_epoch.size());
  for (const auto& [epoch, w] : of_epoch) all.push_back(w);
  std::sort(all.begin(), all.end(),
            [](const window& a, const window& b) { return a.first_ns < b.first_ns; });
  std::vector<window> apart;
  for (const window& w : all) {
    if (apart.empty() || apart.back().last_ns < w.first_ns) {
      apart.push_back(w);
      continue;
    }
    apart.back().last_start_ns = std::max(apart.back().last_start_ns, w.last_start_ns);
    apart.back().last_ns = std::max(apart.back().last_ns, w.last_ns);
  }
  return apart;
}

/// Splits the time ranges in which a stage works (`windows`) into intervals in which the state of
/// the stage does not change, and calls `on_moment(const moment&)` for each interval, in order of
/// time.
template <class OnMoment>
void for_each_moment(const std::vector<passage>& passages, const std::vector<window>& windows,
                     OnMoment&& on_moment) {
  struct change {
    std::int64_t time_ns;
    int busy;
    int unfetched;
  };
  std::vector<change> changes;
  for (const passage& p : passages) {
    changes.push_back({p.start_ns, 1, 0});
    const bool is_queued = p.fetched_ns && *p.fetched_ns > p.end_ns;
    changes.push_back({p.end_ns, -1, is_queued ? 1 : 0});
    if (is_queued) changes.push_back({*p.fetched_ns, 0, -1});
    if (p.ready_ns) changes.push_back({*p.ready_ns, 0, 0});
  }
  for (const window& w : windows) {
    changes.push_back({w.first_ns, 0, 0});
    changes.push_back({w.last_ns, 0, 0});
  }
  std::sort(changes.begin(), changes.end(),
            [](const change& a, const change& b) { return a.time_ns < b.time_ns; });
  std::int64_t busy = 0;
  std::int64_t unfetched = 0;
  std::size_t next = 0;  // index of the passage that starts next
  auto in = windows.begin();
  for (std::size_t i = 0; i + 1 < changes.size(); ++i) {
    busy += changes[i].busy;
    unfetched += changes[i].unfetched;
    const std::int64_t now_ns = changes[i].time_ns;
    const std::int64_t length_ns = changes[i + 1].time_ns - now_ns;
    if (length_ns == 0) continue;
    while (next < passages.size() && passages[next].start_ns <= now_ns) ++next;
    while (in != windows.end() && in->last_ns <= now_ns) ++in;
    if (in == windows.end()) return;
    if (now_ns < in->first_ns) continue;
    on_moment(moment{length_ns, static_cast<std::size_t>(std::max<std::int64_t>(0, busy)),
                     static_cast<std::size_t>(std::max<std::int64_t>(0, unfetched)),
                     next < passages.size() && passages[next].ready_ns.value_or(now_ns) <= now_ns,
                     now_ns < in->last_start_ns});
  }
}

/// How many items the stage's output (the queue after it) can hold; see measure_slots().
struct output_bound {
  /// The output can hold at least this many items, because it held as many for a noticeable time.
  std::size_t least = 0;
  /// The number of items that the output can hold, if it is known. It is known if slots were idle
  /// although an item was ready, because then the output was full.
  std::optional<std::size_t> exact;
};

/// States that last for less than this share of the time are ignored. They occur because a thread
/// takes time to wake up, and because it fetches an item a little before its work on the item
/// begins.
constexpr double noticeable = 0.001;

output_bound learn_output_bound(const std::vector<passage>& passages,
                                const std::vector<window>& windows, std::size_t slots) {
  // For each number of items in the stage's output queue: how long slots were idle although an item
  // was ready, while the queue held this number of items.
  std::map<std::size_t, std::int64_t> at_bound;
  // For each number n: how long the finished items minus the idle slots were n. During this time
  // the output queue held at least n items, because each idle slot may hold one finished item.
  std::map<std::size_t, std::int64_t> below;
  std::int64_t at_bound_ns = 0;
  std::int64_t whole_ns = 0;
  for_each_moment(passages, windows, [&](const moment& m) {
    whole_ns += m.length_ns;
    const std::size_t idle = slots - std::min(m.busy, slots);
    if (m.unfetched < idle) return;
    below[m.unfetched - idle] += m.length_ns;
    if (idle == 0 || !m.ready || !m.starts_more) return;
    at_bound[m.unfetched - idle] += m.length_ns;
    at_bound_ns += m.length_ns;
  });
  const double min_ns = noticeable * static_cast<double>(whole_ns);
  output_bound bound;
  std::int64_t above_ns = 0;
  for (auto b = below.rbegin(); b != below.rend(); ++b) {
    above_ns += b->second;
    if (static_cast<double>(above_ns) < min_ns) continue;
    bound.least = b->first;
    break;
  }
  if (static_cast<double>(at_bound_ns) < min_ns) return bound;
  std::int64_t up_to_ns = 0;
  for (const auto& [unfetched, ns] : at_bound) {
    up_to_ns += ns;
    if (2 * up_to_ns < at_bound_ns) continue;
    bound.exact = unfetched;
    break;
  }
  return bound;
}

struct slot_times {
  double busy = 0;
  double starved = 0;
  double blocked = 0;

  double all() const { return busy + starved + blocked; }
  slot_shares shares() const {
    if (all() <= 0) return {};
    return {busy / all(), starved / all(), blocked / all()};
  }
};

}  // namespace

slot_shares measure_slots(const std::vector<passage>& passages, std::size_t slots) {
  const std::vector<window> windows = windows_of(passages);
  const bool source = is_source(passages);
  const output_bound bound = source ? output_bound{} : learn_output_bound(passages, windows, slots);
  slot_times times;
  double starved_or_blocked = 0;
  for_each_moment(passages, windows, [&](const moment& m) {
    const auto ns = static_cast<double>(m.length_ns);
    const std::size_t busy = std::min(m.busy, slots);
    const std::size_t idle = slots - busy;
    times.busy += ns * static_cast<double>(busy);
    if (source) {
      if (m.starts_more) times.blocked += ns * static_cast<double>(idle);
      return;
    }
    const auto above = [&](std::size_t unfetched) {
      return std::min(idle, m.unfetched > unfetched ? m.unfetched - unfetched : 0);
    };
    const std::size_t blocked = bound.exact ? above(*bound.exact) : m.ready ? above(0) : 0;
    times.blocked += ns * static_cast<double>(blocked);
    times.starved += ns * static_cast<double>(idle - blocked);
    if (!bound.exact && !m.ready) {
      starved_or_blocked += ns * static_cast<double>(above(bound.least));
    }
  });
  // The logs do not show whether slots were starved or blocked during the time
  // `starved_or_blocked`. If half of this time counts as blocked and half as starved, at most half
  // of it is counted incorrectly.
  times.blocked += starved_or_blocked / 2;
  times.starved -= starved_or_blocked / 2;
  slot_shares shares = times.shares();
  if (starved_or_blocked > 0.04 * times.all()) {
    shares.starved.reset();
    shares.blocked.reset();
  }
  return shares;
}

slot_shares measure_pool(const std::vector<std::vector<passage>>& stages, std::size_t threads) {
  std::vector<passage> all;
  bool source = false;
  for (const std::vector<passage>& stage : stages) {
    all.insert(all.end(), stage.begin(), stage.end());
    source |= is_source(stage);
  }
  sort_by_start(all);
  slot_times times;
  for_each_moment(all, windows_of(all), [&](const moment& m) {
    const auto ns = static_cast<double>(m.length_ns);
    const std::size_t busy = std::min(m.busy, threads);
    const auto idle = static_cast<double>(threads - busy);
    times.busy += ns * static_cast<double>(busy);
    if (!m.starts_more) return;
    (source || m.ready ? times.blocked : times.starved) += ns * idle;
  });
  return times.shares();
}

}  // namespace lotus::tool
