#include "commands/viz/view.hpp"

#include <algorithm>
#include <string_view>

#include "base/errors.hpp"
#include "base/nearest.hpp"
#include "base/text.hpp"
#include "model/pipeline/items.hpp"
#include "model/pipeline/side_data.hpp"
#include "model/pipeline/stages.hpp"
#include "model/run_model.hpp"
#include "model/run_part.hpp"

namespace lotus::tool {
slowest parse_slowest(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  slowest wanted;
  if (colon != std::string::npos) wanted.stage = text.substr(0, colon);
  const std::string_view number =
      std::string_view(text).substr(colon == std::string::npos ? 0 : colon + 1);
  if (!read_whole(number, wanted.count) || wanted.count == 0 ||
      (colon != std::string::npos && wanted.stage.empty())) {
    throw usage_error("--only-slowest: '" + text + "' is neither a number from 1 nor STAGE:N");
  }
  return wanted;
}

namespace {

/// Finds a stage by its name, with or without the S that begins all names in logs; nullopt if none.
std::optional<stage_id> look_for_stage(const std::string& name, const run_data& run) {
  for (const stage_span& span : run.side.stages) {
    const std::string_view full = run.names.name(span.name);
    if (full == name || full.compare(1, std::string::npos, name) == 0) return stage_id(span.name);
  }
  return std::nullopt;
}

}  // namespace

bool has_window(const view_options& options, const run_data& run) {
  const bool has_stage = !options.only_slowest || options.only_slowest->stage.empty() ||
                         look_for_stage(options.only_slowest->stage, run);
  return has_stage && (!run.files->wanted || has_part(*run.files->wanted, run));
}

view::view(const view_options& options, const run_data& run)
    : simple_(options.ops.empty() && !options.only_slowest), ops_(options.ops) {
  const run_batches& batches = run.batches;
  if (run.files->wanted) part_ = part_of(*run.files->wanted, run);
  if (!options.only_slowest) return;
  chosen_ = true;
  chosen_batches_.assign(batches.all().size(), false);
  chosen_preprocessings_.assign(batches.preprocessing_spans().size(), false);
  if (options.only_slowest->stage.empty()) {
    choose_batches(options.only_slowest->count, batches);
  } else {
    choose_items(*options.only_slowest, run);
  }
  choose_spans(batches);
}

void view::choose_batches(std::size_t count, const run_batches& batches) {
  // Preprocess time and index of each batch.
  std::vector<std::pair<std::int64_t, std::size_t>> durations;
  for (std::size_t i = 0; i < batches.all().size(); ++i) {
    const batch& b = batches.all()[i];
    const std::optional<time_span> preprocessing = batches.made(b);
    if (!preprocessing || !has_time(preprocessing->start_ns, preprocessing->end_ns)) continue;
    durations.emplace_back(batches.preprocess_ns(b).value_or(preprocessing->duration_ns()), i);
  }
  std::stable_sort(durations.begin(), durations.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  durations.resize(std::min(count, durations.size()));
  for (const auto& [ns, index] : durations) {
    chosen_batches_[index] = true;
    const batch& b = batches.all()[index];
    for (std::uint32_t s = 0; s < b.spans; ++s) chosen_preprocessings_[b.first_span + s] = true;
  }
}

void view::choose_items(const slowest& wanted, const run_data& run) {
  const std::optional<stage_id> stage = look_for_stage(wanted.stage, run);
  if (!stage) {
    std::vector<std::string> known;
    for (const stage_figures& one : measure_stages(run)) known.push_back(one.name);
    const std::string meant = did_you_mean(wanted.stage, known);
    throw usage_error("--only-slowest: there is no stage '" + wanted.stage + "'" +
                      (meant.empty() ? "" : "; " + meant));
  }
  const std::vector<preprocessing_span>& preprocessing = run.batches.preprocessing_spans();
  const std::vector<item> items = items_of(run.batches);
  // Time in the stage and index of each item.
  std::vector<std::pair<std::int64_t, std::size_t>> durations;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!has_time(items[i].extent.start_ns, items[i].extent.end_ns)) continue;
    std::int64_t in_stage_ns = -1;
    for (const span_number span : items[i].spans) {
      if (preprocessing[span].stage != *stage) continue;
      in_stage_ns = std::max<std::int64_t>(in_stage_ns, 0) + preprocessing[span].duration_ns;
    }
    if (in_stage_ns >= 0) durations.emplace_back(in_stage_ns, i);
  }
  std::stable_sort(durations.begin(), durations.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  durations.resize(std::min(wanted.count, durations.size()));
  for (const auto& [ns, index] : durations) {
    for (const span_number span : items[index].spans) {
      chosen_preprocessings_[span] = true;
      // If the stage works on batches, the batches' waits and steps are shown too.
      const optional_batch of = preprocessing[span].batch;
      if (!preprocessing[span].of_item && of) chosen_batches_[of->value()] = true;
    }
  }
}

void view::choose_spans(const run_batches& batches) {
  for (std::size_t i = 0; i < chosen_preprocessings_.size(); ++i) {
    const preprocessing_span& span = batches.preprocessing_spans()[i];
    if (!chosen_preprocessings_[i] || !span.file) continue;
    const std::size_t file = span.file->value();
    if (file >= chosen_spans_.size()) chosen_spans_.resize(file + 1);
    chosen_spans_[file].emplace_back(span.start_ns, span.end_ns());
  }
  for (auto& spans : chosen_spans_) {
    std::sort(spans.begin(), spans.end());
    // Disjoint intervals; `spans` may overlap, because stages may be nested.
    std::vector<std::pair<std::int64_t, std::int64_t>> disjoint;
    for (const auto& [start_ns, end_ns] : spans) {
      if (disjoint.empty() || start_ns >= disjoint.back().second) {
        disjoint.emplace_back(start_ns, end_ns);
      } else {
        disjoint.back().second = std::max(disjoint.back().second, end_ns);
      }
    }
    spans = std::move(disjoint);
  }
}

bool view::has_name(std::uint32_t name, const name_table& names) {
  if (ops_.empty()) return true;
  if (name >= name_known_.size()) name_known_.resize(names.size(), -1);
  if (name_known_[name] < 0) {
    const std::string_view full = names.name(name);
    const bool wanted = std::any_of(ops_.begin(), ops_.end(), [full](const std::string& op) {
      return full == op || (full.size() == op.size() + 1 && full.compare(1, op.size(), op) == 0);
    });
    name_known_[name] = wanted ? 1 : 0;
    name_found_ = name_found_ || wanted;
  }
  return name_known_[name] > 0;
}

bool view::is_in_chosen_batch(std::size_t file, std::int64_t start_ns, std::int64_t end_ns) const {
  if (!chosen_) return true;
  if (file >= chosen_spans_.size()) return false;
  const auto& spans = chosen_spans_[file];
  auto at = std::upper_bound(spans.begin(), spans.end(), start_ns,
                             [](std::int64_t t, const auto& span) { return t < span.first; });
  if (at == spans.begin()) return false;
  --at;
  return end_ns <= at->second;
}

}  // namespace lotus::tool
