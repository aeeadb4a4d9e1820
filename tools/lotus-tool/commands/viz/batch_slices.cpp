#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/sorting.hpp"
#include "commands/viz/draw.hpp"
#include "commands/viz/formats/trace_sink.hpp"
#include "commands/viz/view.hpp"
#include "log/batch_kinds.hpp"
#include "log/operation_names.hpp"
#include "log/shown_name.hpp"
#include "model/pipeline/next_spans.hpp"
#include "model/pipeline/side_data.hpp"
#include "model/run_data.hpp"
#include "model/run_model.hpp"

namespace lotus::tool {
namespace {

bool is_instant(const batch_record& r) {
  return r.is_marker() || batch_kind_of(r.kind).instant;
}

/// Returns the interval in which a record is drawn. The record of a consumed batch is drawn as the
/// consumer's step, which lasts until the next wait or batch. If its end is unknown, as for an
/// epoch's last step and without records of waits, it is drawn with the placeholder duration in the
/// log.
time_span drawn_span(const run_batches& batches, record_number n) {
  const batch_record& r = *batches.record(n);
  if (is_instant(r)) return {r.start_ns, r.start_ns};
  const time_span logged{r.start_ns, r.end_ns()};
  const bool is_step = batch_kind_of(r.kind).lasts_a_step && batches.waits_known();
  return is_step ? batches.step(n).value_or(logged) : logged;
}

}  // namespace

batch_slices::batch_slices(const run_data& run, view& shown, name_table& names, std::uint64_t& flow)
    : run_(run), preprocessings_(run.batches.preprocessing_spans().size()) {
  for (const batch_kind& kind : batch_kinds) {
    names_[static_cast<std::size_t>(kind.kind)] = shown_name(kind.family);
  }
  marker_name_ = names_[static_cast<std::size_t>(record_kind::wait)] + " (out of order)";
  const std::vector<preprocessing_span>& all = run.batches.preprocessing_spans();
  std::iota(preprocessings_.begin(), preprocessings_.end(), span_number{0});
  const auto key = [&all](span_number n) {
    return std::tie(all[n].file, all[n].start_ns, all[n].stage, all[n].number);
  };
  sort_runs(preprocessings_.begin(), preprocessings_.end(),
            [&key](span_number a, span_number b) { return key(a) < key(b); });
  slices_.reserve(run.batches.records().size() + run.side.stages.size());
  add_records(shown);
  add_stages(shown, names);
  sort_runs(slices_.begin(), slices_.end(), [](const batch_slice& a, const batch_slice& b) {
    if (a.file != b.file) return a.file < b.file;
    if (a.start_ns != b.start_ns) return a.start_ns < b.start_ns;
    if (a.duration_ns != b.duration_ns) return a.duration_ns > b.duration_ns;
    return std::tie(a.record, a.stage) < std::tie(b.record, b.stage);
  });
  add_arrows(flow);
}

optional_span batch_slices::preprocessing_of(optional_file file, std::int64_t start_ns,
                                             stage_id stage, std::int64_t number) {
  const std::vector<preprocessing_span>& all = run_.batches.preprocessing_spans();
  const auto wanted = std::tie(file, start_ns, stage, number);
  const auto key = [&all](span_number n) {
    return std::tie(all[n].file, all[n].start_ns, all[n].stage, all[n].number);
  };
  // Most calls are in the order of preprocessings_.
  auto at = preprocessings_.begin() + next_asked_;
  if (at == preprocessings_.end() || key(*at) != wanted) {
    at = std::lower_bound(preprocessings_.begin(), preprocessings_.end(), wanted,
                          [&](span_number n, const auto& to) { return key(n) < to; });
    if (at == preprocessings_.end() || key(*at) != wanted) return std::nullopt;
  }
  next_asked_ = at + 1 - preprocessings_.begin();
  return *at;
}

void batch_slices::add_records(const view& shown) {
  const run_batches& batches = run_.batches;
  for (record_number n = 0; n < batches.records().size(); ++n) {
    const batch_record& r = *batches.record(n);
    const time_span span = drawn_span(batches, n);
    if (!shown.has_batch(batches.batch_of(r)) || !shown.has_time(span.start_ns, span.end_ns)) {
      continue;
    }
    const optional_span preprocessing =
        r.kind == record_kind::preprocessed
            ? preprocessing_of(r.file, r.start_ns, preprocess_stage, r.index)
            : std::nullopt;
    slices_.push_back(
        {span.start_ns, span.duration_ns(), r.file, n, std::nullopt, preprocessing, is_instant(r)});
  }
}

void batch_slices::add_stages(view& shown, name_table& names) {
  for (std::uint32_t n = 0; n < run_.side.stages.size(); ++n) {
    const stage_span& s = run_.side.stages[n];
    if (!s.file || !shown.has_time(s.start_ns, s.end_ns())) continue;
    if (!shown.has_name(names.id_of_decoded(run_.names.name(s.name)), names)) continue;
    const optional_span preprocessing =
        preprocessing_of(s.file, s.start_ns, stage_id(s.name), s.number);
    if (preprocessing ? !shown.has_preprocessing(*preprocessing) : shown.is_chosen()) continue;
    slices_.push_back({s.start_ns, s.duration_ns, *s.file, std::nullopt, n, preprocessing, false});
  }
}

void batch_slices::add_arrows(std::uint64_t& flow) {
  const std::vector<preprocessing_span>& all = run_.batches.preprocessing_spans();
  using optional_place = optional_index<std::uint32_t>;  // index in slices_
  std::vector<optional_place> slice_of(all.size());      // index of the slice by preprocessing span
  // For each batch, the index of the slice with its step.
  std::vector<optional_place> step_of(run_.batches.all().size());
  for (std::uint32_t i = 0; i < slices_.size(); ++i) {
    if (slices_[i].preprocessing) slice_of[*slices_[i].preprocessing] = i;
    if (!slices_[i].record) continue;
    const batch_record& r = *run_.batches.record(slices_[i].record);
    if (r.kind != record_kind::consumed) continue;
    const batch_id of = run_.batches.batch_of(r);
    if (run_.batches.at(of).consumed == slices_[i].record) step_of[of.value()] = i;
  }
  const std::vector<optional_span> next = next_spans(run_.batches);
  struct arrow {
    std::uint32_t from;  // index in slices_
    std::uint32_t to;
  };
  std::vector<arrow> arrows;
  for (std::uint32_t m = 0; m < all.size(); ++m) {
    optional_place to;
    if (next[m]) {
      to = slice_of[*next[m]];
    } else if (all[m].batch) {
      to = step_of[all[m].batch->value()];
    }
    if (!slice_of[m] || !to) continue;
    arrows.push_back({*slice_of[m], *to});
    ++slices_[*slice_of[m]].points;
    ++slices_[*to].points;
  }
  std::uint32_t points = 0;
  for (batch_slice& s : slices_) {
    s.first_point = points;
    points += std::exchange(s.points, 0);
  }
  points_.resize(points);
  const auto add = [this](batch_slice& to, const flow_point& point) {
    points_[to.first_point + to.points++] = point;
  };
  for (const arrow& one : arrows) {
    add(slices_[one.from], {flow_end::leaves, flow});
    add(slices_[one.to], {flow_end::arrives, flow});
    ++flow;
  }
}

std::pair<const batch_slice*, const batch_slice*> batch_slices::of_file(std::size_t file) const {
  const auto at = [&](std::size_t f) {
    return slices_.data() + (std::lower_bound(slices_.begin(), slices_.end(), f,
                                              [](const batch_slice& s, std::size_t wanted) {
                                                return s.file.value() < wanted;
                                              }) -
                             slices_.begin());
  };
  return {at(file), at(file + 1)};
}

void batch_slices::draw(const batch_slice& slice, track where, trace_sink& sink) const {
  slice_event event{where, {}, {}, slice.start_ns, slice.duration_ns};
  const flow_point* const first = points_.data() + slice.first_point;
  event.flows = {first, first + slice.points};
  if (slice.record) {
    draw_record(slice, event, sink);
  } else {
    draw_stage(slice, event, sink);
  }
}

void batch_slices::draw_record(const batch_slice& slice, slice_event& event,
                               trace_sink& sink) const {
  const batch_record& r = *run_.batches.record(slice.record);
  event.category = "batch";
  event.name = r.is_marker() ? marker_name_ : names_[static_cast<std::size_t>(r.kind)];
  event.instant = slice.instant;
  event.arguments.add("batch", shown_number(r.index));
  if (knows_epochs()) event.arguments.add("epoch", r.epoch);
  sink.slice(event);
}

void batch_slices::draw_stage(const batch_slice& slice, slice_event& event,
                              trace_sink& sink) const {
  const stage_span& s = run_.side.stages[*slice.stage];
  const std::string name = shown_name(run_.names.name(s.name));
  event.category = "stage";
  event.name = name;
  const preprocessing_span* const preprocessing =
      slice.preprocessing ? &run_.batches.preprocessing_spans()[*slice.preprocessing] : nullptr;
  const bool of_item = preprocessing != nullptr && preprocessing->of_item;
  event.arguments.add(of_item ? "item" : "batch", shown_number(s.number));
  if (preprocessing != nullptr && preprocessing->batch) {
    const batch& b = run_.batches.at(*preprocessing->batch);
    if (of_item) event.arguments.add("batch", shown_number(b.index));
    if (knows_epochs()) event.arguments.add("epoch", b.epoch);
  }
  sink.slice(event);
}

}  // namespace lotus::tool
