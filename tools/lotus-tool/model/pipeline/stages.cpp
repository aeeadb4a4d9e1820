#include "model/pipeline/stages.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "log/shown_name.hpp"
#include "model/path/span_segments.hpp"
#include "model/pipeline/awaited_spans.hpp"
#include "model/pipeline/items.hpp"
#include "model/pipeline/stage_threads.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

/// Data about one stage, collected from its spans. The measurements of the stage are computed from
/// it.
struct gathered {
  stage_figures figures;
  std::vector<thread_span> threads;
  std::vector<passage> passages;
  // The items or batches in the stage. Items are identified by number and pass, and batches by
  // their id, which differs in every epoch.
  std::set<std::tuple<std::int64_t, pass_number, optional_batch, consumer_id>> numbers;
  std::set<batch_id> batches;
  std::int64_t total_ns = 0;
  std::int64_t self_ns = 0;
  double start_sum_ns = 0;  // sum of the times from the start of a batch to the stage's spans in it
  bool cpu_missing = false;
};

class stage_reader {
 public:
  explicit stage_reader(const run_data& run)
      : run_(run),
        spans_(run.batches.preprocessing_spans()),
        awaited_(run, segmented_spans(run.batches)) {}

  std::vector<stage_figures> read() && {
    find_self_times();
    find_passages();
    for (span_number n = 0; n < spans_.size(); ++n) add(n);
    std::vector<gathered> all;
    all.reserve(by_stage_.size());
    for (auto& [stage, g] : by_stage_) all.push_back(std::move(g));
    std::stable_sort(all.begin(), all.end(), [](const gathered& a, const gathered& b) {
      return a.start_sum_ns / static_cast<double>(a.threads.size()) <
             b.start_sum_ns / static_cast<double>(b.threads.size());
    });
    measure(all);
    std::vector<stage_figures> figures;
    figures.reserve(all.size());
    for (gathered& g : all) figures.push_back(std::move(g.figures));
    return figures;
  }

 private:
  /// Computes the duration of each span without the spans that are nested in it on the same thread.
  void find_self_times() {
    std::vector<span_number> order(spans_.size());
    for (span_number n = 0; n < order.size(); ++n) order[n] = n;
    std::sort(order.begin(), order.end(), [this](span_number a, span_number b) {
      const preprocessing_span& x = spans_[a];
      const preprocessing_span& y = spans_[b];
      return std::make_tuple(x.file, x.start_ns, -x.duration_ns, a) <
             std::make_tuple(y.file, y.start_ns, -y.duration_ns, b);
    });
    self_ns_.resize(spans_.size());
    std::vector<span_number> open;
    for (const span_number n : order) {
      const preprocessing_span& s = spans_[n];
      self_ns_[n] = s.duration_ns;
      while (!open.empty() &&
             (spans_[open.back()].file != s.file || spans_[open.back()].end_ns() < s.end_ns())) {
        open.pop_back();
      }
      if (!open.empty() && s.file) self_ns_[open.back()] -= s.duration_ns;
      open.push_back(n);
    }
  }

  /// Finds for each span when its item or batch was ready for the stage, and when the next stage
  /// fetched it. Both times follow from the previous and the next span of the same item or, after
  /// the last span of an item, of its batch.
  void find_passages() {
    passages_.resize(spans_.size());
    for (span_number n = 0; n < spans_.size(); ++n) {
      const preprocessing_span& s = spans_[n];
      passages_[n] = {s.start_ns, s.end_ns(), std::nullopt, std::nullopt,
                      s.batch ? run_.batches.at(*s.batch).epoch : s.pass.value()};
    }
    // For each batch: the spans in which the batch as a whole was processed, not one of its items.
    // The first of these spans that begins after an item's last span shows when the item became
    // part of the batch.
    std::map<batch_id, std::vector<span_number>> own;
    const std::vector<item> items = items_of(run_.batches);
    for (const item& it : items) {
      link(it.spans);
      const optional_batch of = spans_[it.spans.front()].batch;
      if (!it.of_item && of) own[*of] = it.spans;
    }
    for (const item& it : items) {
      const optional_batch of = spans_[it.spans.front()].batch;
      if (it.of_item && of) link_item_to_batch(it, own[*of]);
    }
    for (const item& it : items) {
      const optional_batch of = spans_[it.spans.front()].batch;
      if (!of) continue;
      const std::optional<std::int64_t> used_ns = run_.batches.delivery_ns(run_.batches.at(*of));
      for (const span_number n : it.spans) {
        passage& p = passages_[n];
        if (used_ns && !p.fetched_ns && *used_ns > p.end_ns) p.fetched_ns = used_ns;
      }
    }
  }

  /// Sets passage::ready_ns and passage::fetched_ns for the spans of one item or batch: the last
  /// end before a span begins, and the first begin after it has ended, of another stage. `spans`
  /// must be sorted by start.
  void link(const std::vector<span_number>& spans) {
    const auto at = [&](std::size_t i) -> const preprocessing_span& { return spans_[spans[i]]; };
    // For each span: the position of the next one that is of another stage.
    std::vector<std::size_t> other(spans.size(), spans.size());
    for (std::size_t i = spans.size(); i-- > 1;) {
      other[i - 1] = at(i).stage == at(i - 1).stage ? other[i] : i;
    }
    std::vector<span_number> by_end = spans;
    std::stable_sort(by_end.begin(), by_end.end(), [this](span_number a, span_number b) {
      return spans_[a].end_ns() < spans_[b].end_ns();
    });
    // Of the spans that have ended: the last one, and the last one of another stage than that.
    optional_span last;
    optional_span last_of_other;
    auto ended = by_end.begin();
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const preprocessing_span& s = at(i);
      std::size_t next = static_cast<std::size_t>(
          std::lower_bound(
              spans.begin() + static_cast<std::ptrdiff_t>(i) + 1, spans.end(), s.end_ns(),
              [this](span_number n, std::int64_t ns) { return spans_[n].start_ns < ns; }) -
          spans.begin());
      if (next < spans.size() && at(next).stage == s.stage) next = other[next];
      if (next < spans.size()) passages_[spans[i]].fetched_ns = at(next).start_ns;
      for (; ended != by_end.end() && spans_[*ended].end_ns() <= s.start_ns; ++ended) {
        if (last && spans_[*last].stage != spans_[*ended].stage) last_of_other = last;
        last = *ended;
      }
      const optional_span before = last && spans_[*last].stage == s.stage ? last_of_other : last;
      if (before) passages_[spans[i]].ready_ns = spans_[*before].end_ns();
    }
  }

  /// Links an item to its batch: the first span of the batch that starts after the item's end
  /// fetches the item. Sets ready_ns of that span, which needed the item, and fetched_ns of the
  /// item's spans.
  void link_item_to_batch(const item& it, const std::vector<span_number>& batch_spans) {
    for (const span_number b : batch_spans) {
      const preprocessing_span& next = spans_[b];
      if (next.start_ns < it.extent.end_ns) continue;
      std::optional<std::int64_t>& ready_ns = passages_[b].ready_ns;
      ready_ns = std::max(ready_ns.value_or(it.extent.end_ns), it.extent.end_ns);
      for (const span_number n : it.spans) {
        passage& p = passages_[n];
        if (!p.fetched_ns) p.fetched_ns = next.start_ns;
      }
      return;
    }
  }

  void add(span_number n) {
    const preprocessing_span& s = spans_[n];
    const auto [at, is_new] = by_stage_.try_emplace(s.stage);
    gathered& g = at->second;
    if (is_new) {
      g.figures.stage = s.stage;
      g.figures.name =
          s.stage == preprocess_stage ? "preprocess" : shown_name(run_.names.name(s.stage.value()));
      g.figures.of_items = s.of_item;
      g.figures.cpu = cpu_split{0, 0, 0};
    }
    g.figures.durations_ns.push_back(s.duration_ns);
    const std::int64_t waited_ns = awaited_.waited_ns(n);
    g.total_ns += s.duration_ns - waited_ns;
    g.self_ns += self_ns_[n] - waited_ns;
    if (s.of_item) {
      g.numbers.emplace(s.number, s.pass, std::nullopt, s.consumer);
    } else {
      g.numbers.emplace(s.number, pass_number(), s.batch, s.consumer);
    }
    if (s.batch) g.batches.insert(*s.batch);
    g.threads.push_back({s.start_ns, s.end_ns(), self_ns_[n], s.file});
    g.passages.push_back(passages_[n]);
    if (s.batch) {
      const batch& b = run_.batches.at(*s.batch);
      const std::int64_t first_ns = spans_[b.first_span].start_ns;
      g.start_sum_ns += static_cast<double>(s.start_ns - first_ns);
    }
    if (const off_cpu_time* const off = run_.side.off_cpu_of(s.file)) {
      *g.figures.cpu += off->split(s.start_ns, s.end_ns());
    } else {
      g.cpu_missing = true;
    }
  }

  static void measure(std::vector<gathered>& all) {
    std::vector<std::vector<thread_span>> threads;
    for (gathered& g : all) {
      threads.push_back(std::move(g.threads));
      sort_by_start(g.passages);
      g.figures.numbers = g.numbers.size();
      g.figures.self_ns = g.self_ns;
      if (g.figures.of_items && !g.batches.empty()) {
        g.figures.numbers_per_batch =
            static_cast<double>(g.numbers.size()) / static_cast<double>(g.batches.size());
      }
      g.figures.mean_service_ns =
          static_cast<double>(g.total_ns) / static_cast<double>(g.numbers.size());
      if (g.cpu_missing) g.figures.cpu.reset();
    }
    const stage_pools pools = find_pools(threads);
    // For each pool: service time per batch.
    std::vector<double> pool_service_ns(pools.pools.size());
    for (std::size_t s = 0; s < all.size(); ++s) {
      const gathered& g = all[s];
      if (!pools.stages[s].pool) continue;
      pool_service_ns[*pools.stages[s].pool] += static_cast<double>(g.self_ns) /
                                                static_cast<double>(g.numbers.size()) *
                                                g.figures.numbers_per_batch;
    }
    for (std::size_t s = 0; s < all.size(); ++s) {
      stage_figures& f = all[s].figures;
      f.slots = pools.stages[s].slots;
      f.pool = pools.stages[s].pool;
      if (f.mean_service_ns > 0) {
        f.batches_per_s =
            static_cast<double>(f.slots) * 1e9 / (f.mean_service_ns * f.numbers_per_batch);
        if (f.pool && pool_service_ns[*f.pool] > 0) {
          f.batches_per_s = std::min(*f.batches_per_s, static_cast<double>(pools.pools[*f.pool]) *
                                                           1e9 / pool_service_ns[*f.pool]);
        }
        f.capacity_per_s = *f.batches_per_s * f.numbers_per_batch;
      }
      if (f.pool) continue;
      f.shares = measure_slots(all[s].passages, f.slots);
    }
    for (std::size_t p = 0; p < pools.pools.size(); ++p) measure_pooled(all, p, pools.pools[p]);
  }

  static void measure_pooled(std::vector<gathered>& all, std::size_t pool, std::size_t threads) {
    std::vector<std::vector<passage>> passages;
    double self_ns = 0;
    for (const gathered& g : all) {
      if (g.figures.pool != pool) continue;
      passages.push_back(g.passages);
      self_ns += static_cast<double>(g.self_ns);
    }
    const slot_shares shares = measure_pool(passages, threads);
    for (gathered& g : all) {
      if (g.figures.pool != pool) continue;
      g.figures.shares = shares;
      g.figures.shares.busy *= self_ns > 0 ? static_cast<double>(g.self_ns) / self_ns : 0;
    }
  }

  const run_data& run_;
  const std::vector<preprocessing_span>& spans_;
  awaited_spans awaited_;
  std::vector<std::int64_t> self_ns_;  // indexed by span number
  std::vector<passage> passages_;      // indexed by span number
  std::map<stage_id, gathered> by_stage_;
};

}  // namespace

std::vector<stage_figures> measure_stages(const run_data& run) {
  return stage_reader(run).read();
}

}  // namespace lotus::tool
