#include "model/path/span_pieces.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "model/run_data.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

/// Cuts a span into pieces, as its operations come in order of start, parents first.
class cutter {
 public:
  cutter(const making_span& span, std::vector<span_piece>& to)
      : cursor_ns_(span.start_ns), end_ns_(span.end_ns()), to_(to) {}

  void add(const operation& op) {
    leave_until(op.start_ns);
    cut(op.start_ns);
    open_.push_back(
        {std::min(op.end_ns(), open_.empty() ? end_ns_ : open_.back().end_ns), op.name});
  }
  void finish() {
    leave_until(end_ns_);
    cut(end_ns_);
  }

 private:
  struct open_operation {
    std::int64_t end_ns;
    std::uint32_t name;
  };

  void leave_until(std::int64_t time_ns) {
    while (!open_.empty() && open_.back().end_ns <= time_ns) {
      cut(open_.back().end_ns);
      open_.pop_back();
    }
  }
  void cut(std::int64_t until_ns) {
    if (until_ns <= cursor_ns_) return;
    to_.push_back({cursor_ns_, until_ns, open_.empty() ? UINT32_MAX : open_.back().name});
    cursor_ns_ = until_ns;
  }

  std::int64_t cursor_ns_;
  std::int64_t end_ns_;
  std::vector<span_piece>& to_;
  std::vector<open_operation> open_;
};

std::vector<operation> in_order_of_start(const run_data& run, std::uint32_t file) {
  std::vector<operation> ops;
  if (file == no_file) return ops;
  run.for_each_operation(file, [&](const operation& op) { ops.push_back(op); });
  // Of two that are the same the later line is the parent, and goes first.
  std::reverse(ops.begin(), ops.end());
  std::stable_sort(ops.begin(), ops.end(), [](const operation& a, const operation& b) {
    return std::tie(a.start_ns, b.duration_ns) < std::tie(b.start_ns, a.duration_ns);
  });
  return ops;
}

}  // namespace

span_pieces::span_pieces(const run_data& run) {
  const std::vector<making_span>& spans = run.batches.making();
  places_.resize(spans.size());
  std::vector<std::uint32_t> order(spans.size());
  for (std::uint32_t n = 0; n < order.size(); ++n) order[n] = n;
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const making_span& x = spans[a];
    const making_span& y = spans[b];
    return std::tie(x.file, x.start_ns, y.duration_ns, a) <
           std::tie(y.file, y.start_ns, x.duration_ns, b);
  });
  std::vector<operation> ops;
  std::size_t next = 0;
  std::uint32_t file = no_file;
  std::int64_t until_ns = INT64_MIN;  // of the last span that lies in no other
  for (const std::uint32_t n : order) {
    const making_span& span = spans[n];
    if (span.file != file) {
      file = span.file;
      ops = in_order_of_start(run, file);
      next = 0;
      until_ns = INT64_MIN;
    }
    if (file != no_file && span.end_ns() <= until_ns) continue;
    until_ns = span.end_ns();
    while (next < ops.size() && ops[next].start_ns < span.start_ns) ++next;
    places_[n].first = pieces_.size();
    cutter cut(span, pieces_);
    for (; next < ops.size() && ops[next].start_ns < span.end_ns(); ++next) {
      // What began with the span and outlasts it contains it.
      if (ops[next].end_ns() <= span.end_ns()) cut.add(ops[next]);
    }
    cut.finish();
    places_[n].last = pieces_.size();
  }
}

}  // namespace lotus::tool
