#include "curve/curve.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "base/errors.hpp"
#include "base/nearest.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "describe/description.hpp"
#include "findings/checks/check.hpp"
#include "findings/claims.hpp"
#include "findings/gains.hpp"
#include "findings/run_limits.hpp"
#include "findings/words.hpp"
#include "log/shown_name.hpp"
#include "replay/change_text.hpp"
#include "replay/recorded/recorded_pipeline.hpp"
#include "replay/single_changes.hpp"

namespace lotus::tool {
namespace {

using axis_kind = curve_axis::kind;

constexpr std::array<std::string_view, 5> axis_names{"workers", "prefetch", "cpus", "threads",
                                                     "speed"};
/// For each kind of quantity: its noun for one and for several, and the words that follow it.
constexpr std::array<std::string_view, 3> axis_words[] = {
    {"worker", "workers", ""},
    {"batch", "batches", " in flight per worker"},
    {"CPU", "CPUs", ""},
    {"thread", "threads", " in "},
    {"time", "times", " as fast: "}};

/// Returns the values to predict, among them `now`: all up to twice as many as now and at least 8
/// or, if that is more than 16, only some of them.
std::set<double> values_around(double now) {
  constexpr std::size_t all_up_to = 16;
  const auto most = static_cast<std::size_t>(std::clamp(2 * now, 8.0, 128.0));
  std::set<double> values{now};
  std::size_t power = 1;
  for (std::size_t n = 1; n <= most; ++n) {
    if (n == 2 * power) power = n;
    if (most <= all_up_to || n == power || 2 * n == 3 * power) {
      values.insert(static_cast<double>(n));
    }
  }
  return values;
}

/// Returns the change that sets the quantity to a value.
pipeline_change change_to(const curve_axis& axis, double value, const recorded_pipeline& p) {
  pipeline_change change;
  const auto count = static_cast<std::size_t>(value);
  switch (axis.is) {
    case axis_kind::workers:
      if (count > 0) change.workers = count;
      change.own_thread = p.makes_itself && count > 0;
      break;
    case axis_kind::prefetch:
      change.prefetch = count;
      break;
    case axis_kind::cpus:
      change.cpus = value;
      break;
    case axis_kind::threads:
      change.threads[axis.name] = count;
      break;
    case axis_kind::speed:
      if (value != 1) change.faster[axis.name] = value;
      break;
  }
  return change;
}

/// Returns the throughput with so many workers that only calls that wait for each other limit it;
/// nullopt if nothing does.
std::optional<double> rate_of_shared_calls(const what_if& run) {
  if (!run.recorded().has_workers()) return std::nullopt;
  pipeline_change many;
  many.workers = 64;
  many.own_thread = run.recorded().makes_itself;
  many.cpus = 1000;
  many.step = 0.001;
  const double first = run.guess(many).per_s;
  many.workers = 128;
  constexpr double same = 1.03;
  return run.guess(many).per_s < same * first ? std::optional(first) : std::nullopt;
}

std::vector<curve_limit> limits_of(const what_if& run, const diagnosis& of,
                                   const curve_axis& axis) {
  std::vector<curve_limit> limits;
  const recorded_pipeline& p = run.recorded();
  if (of.consumer_capacity) limits.push_back({{"consumer"}, *of.consumer_capacity});
  if (axis.is == axis_kind::speed) return limits;  // a faster operation changes all other limits
  const double batches = p.achieved_per_s * 1e-9 * run.run_ns();
  const double cpu_ns = p.all_work().cpu_ns + p.unrecorded_cpu_ns;
  if (p.cpu_known && p.cpus && run.others_share() <= 0 && axis.is != axis_kind::cpus &&
      cpu_ns > 0) {
    limits.push_back(
        {{"%", {count_word{*p.cpus, "CPU", "CPUs"}}}, *p.cpus * 1e9 * batches / cpu_ns});
  }
  const std::string shared = p.lock ? p.lock->name : run.limited().name;
  if (!shared.empty()) {
    const std::optional<double> per_s = rate_of_shared_calls(run);
    if (per_s) limits.push_back({{p.lock ? "the lock %" : "%", {name_word{shared}}}, *per_s});
  }
  for (const stage_figures& stage : of.stages) {
    const std::string name = shown_name(stage.name);
    if (name == axis.name || stage.pool || !stage.batches_per_s) continue;
    limits.push_back({{"stage %", {name_word{name}}}, *stage.batches_per_s});
  }
  return limits;
}

}  // namespace

std::string title_of(const curve_axis& axis, bool of_one) {
  const auto& [one, several, rest] = axis_words[static_cast<std::size_t>(axis.is)];
  return std::string(of_one ? one : several).append(rest).append(axis.name);
}

double speed_curve::top_per_s() const {
  double most = 0;
  for (const curve_point& point : points) most = std::max(most, point.would_be.per_s);
  for (const curve_dot& dot : dots) most = std::max(most, dot.run.per_s);
  constexpr double room = 1.3;
  return room * most;
}

std::vector<curve_limit> speed_curve::shown_limits() const {
  std::vector<curve_limit> shown;
  for (const curve_limit& limit : limits) {
    if (limit.per_s < top_per_s()) shown.push_back(limit);
  }
  std::stable_sort(shown.begin(), shown.end(),
                   [](const curve_limit& a, const curve_limit& b) { return a.per_s < b.per_s; });
  return shown;
}

phrase with_facts(std::string_view before, const phrase& facts) {
  if (facts.empty()) return {};
  phrase all{std::string(before)};
  all.add(facts).pattern.pop_back();  // the final period
  return all;
}

phrase why_not_predicted(const diagnosis& of, const what_if& run) {
  const phrase facts = with_facts("the simulation leaves out what limits this run: ",
                                  claims(of).why_not_simulated());
  return facts.empty() ? why_unlike(run) : facts;
}

phrase why_not_simulated(const run_data& run, const judgement& judged) {
  if (!judged.found) return judged.why_not;
  const phrase silent = why_silent(run, judged.found->checks);
  return silent.empty() && judged.simulated == nullptr ? judged.found->why_silent : silent;
}

phrase why_not_predicted(const run_data& run, const judgement& judged) {
  const phrase first = why_not_simulated(run, judged);
  return first.empty() ? why_not_predicted(*judged.found, *judged.simulated) : first;
}

curve_axis axis_named(const std::string& name, const recorded_pipeline& p,
                      const name_table& names) {
  const auto stage_named = [&p](const std::string& wanted) {
    return std::find_if(p.stages.begin(), p.stages.end(), [&wanted](const recorded_stage& s) {
      return s.name == wanted || s.name == shown_name(wanted);
    });
  };
  if (name == "workers") return setting_axes(p).front();
  if (name == "prefetch") {
    if (p.makes_itself || p.stages.size() > 1) {
      throw input_error(p.makes_itself
                            ? "--curve prefetch: the consumer builds its batches itself"
                            : "--curve prefetch: stages build these batches, and their queues "
                              "limit the number in flight");
    }
    return {axis_kind::prefetch, ""};
  }
  if (name == "cpus") {
    if (!p.cpu_known || !p.cpus) {
      throw input_error("--curve cpus: the logs do not show CPU times and the number of CPUs");
    }
    return {axis_kind::cpus, ""};
  }
  constexpr std::string_view of_stage = "stage:";
  if (name.rfind(of_stage, 0) == 0) {
    const auto stage = stage_named(name.substr(of_stage.size()));
    if (stage == p.stages.end() || p.stages.size() == 1) {
      throw input_error("--curve: this run has no stage '" +
                        printable_line(name.substr(of_stage.size())) + "'");
    }
    return {axis_kind::threads, stage->name};
  }
  const std::vector<std::string> known = names_of_work(p, names);
  for (const std::string& one : {name, shown_name(name)}) {
    if (std::find(known.begin(), known.end(), one) != known.end()) return {axis_kind::speed, one};
  }
  const std::string meant = printable_line(did_you_mean(name, known));
  throw input_error("--curve: no '" + printable_line(name) + "' in this run; " +
                    (meant.empty() ? "give workers, prefetch, cpus, stage:NAME or one of " +
                                         joined(known, ", ", printable_line)
                                   : meant));
}

std::vector<curve_axis> setting_axes(const recorded_pipeline& p) {
  std::vector<curve_axis> axes;
  if (p.makes_itself || p.has_workers()) {
    axes.push_back({axis_kind::workers, ""});
  } else {
    std::size_t busy = 0;
    while (busy + 1 < p.stages.size() && !may_need_threads(p, {}, busy)) ++busy;
    axes.push_back({axis_kind::threads, p.stages[busy].name});
    for (std::size_t s = 0; s < p.stages.size(); ++s) {
      if (s != busy && may_need_threads(p, {}, s)) {
        axes.push_back({axis_kind::threads, p.stages[s].name});
      }
    }
  }
  if (!p.makes_itself && p.stages.size() == 1) axes.push_back({axis_kind::prefetch, ""});
  if (p.cpu_known && p.cpus) axes.push_back({axis_kind::cpus, ""});
  return axes;
}

std::optional<curve_axis> changed_work(const measured_run& run, const measured_run& recorded) {
  constexpr double differs = 1.1;  // runs of the same program differ by less
  double most_ns = 0;
  std::optional<curve_axis> found;
  for (const auto& [name, ns] : recorded.batch_ns) {
    const curve_axis axis{axis_kind::speed, name};
    const double faster = run.at(axis, recorded).value_or(1);
    if (faster < differs && faster > 1 / differs) continue;
    // A stage is named only if no single operation in it explains most of the change.
    const double part = recorded.threads.count(name) > 0 ? 0.5 : 1;
    const double changed_ns = part * std::abs(ns - ns / faster);
    if (changed_ns <= most_ns) continue;
    most_ns = changed_ns;
    found = axis;
  }
  return found;
}

speed_curve draw_curve(const what_if& run, const run_data& data, const diagnosis& of,
                       const curve_axis& axis, const std::vector<measured_run>& others) {
  speed_curve curve;
  curve.axis = axis;
  curve.why_not = why_not_predicted(of, run);
  const recorded_pipeline& p = run.recorded();
  const measured_run recorded = measured_from(data, p);
  for (const measured_run& one : others) {
    const std::optional<double> at = one.at(axis, recorded);
    if (at) curve.dots.push_back({one, *at, false});
  }
  std::stable_sort(curve.dots.begin(), curve.dots.end(),
                   [](const curve_dot& a, const curve_dot& b) { return a.at < b.at; });
  const double now = recorded.at(axis, recorded).value_or(1);
  curve.dots.insert(curve.dots.begin(), {recorded, now, true});
  if (!curve.why_not.empty()) return curve;
  const claims facts(of);
  std::set<double> values = values_around(now);
  if (axis.is == axis_kind::speed) {
    values = {1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4};
    // The measured speeds are seldom round.
    for (const curve_dot& dot : curve.dots) values.insert(std::clamp(dot.at, 0.1, 10.0));
  }
  for (const double value : values) {
    curve_point point;
    point.at = value;
    point.change = change_to(axis, value, p);
    point.would_be = run.predict(point.change);
    if (!std::isfinite(point.would_be.per_s)) continue;
    // As whatif does: a gain that the recording rules out is not shown.
    const phrase forbidden = facts.why_not(point.change);
    if (!forbidden.empty() && point.would_be.gain >= 1 + worthwhile) {
      curve.note = phrase{"More is not predicted: "}.add(forbidden);
      continue;
    }
    point.text = value == now ? "as recorded" : change_text(point.change, p);
    curve.points.push_back(std::move(point));
  }
  curve.limits = limits_of(run, of, axis);
  return curve;
}

const description<curve_point>& description_of(const curve_point*) {
  const auto predicted = [](double prediction::*value) {
    return [value](const curve_point& of) { return if_finite(of.would_be.*value); };
  };
  static const description<curve_point> all(
      "curve_point", "a predicted point of the curve",
      {
          {"at", &curve_point::at, "the value, such as the number of workers"},
          {"change", &curve_point::text, "the change in words"},
          {"batches_per_s", predicted(&prediction::per_s), "throughput of the whole run"},
          {"low", predicted(&prediction::low), "lower end of its 90 % interval"},
          {"high", predicted(&prediction::high), "upper end of it"},
          {"gain", predicted(&prediction::gain), "length of the run divided by the predicted one"},
          {"run_ns", predicted(&prediction::run_ns), "predicted length in ns"},
      });
  return all;
}

const description<curve_limit>& description_of(const curve_limit*) {
  static const description<curve_limit> all(
      "curve_limit", "a throughput that the run cannot exceed",
      {
          {"name", &curve_limit::name, "what limits it"},
          {"batches_per_s", &curve_limit::per_s, "the throughput"},
      });
  return all;
}

const description<curve_dot>& description_of(const curve_dot*) {
  using c = const curve_dot&;
  static const description<curve_dot> all(
      "curve_dot", "a measured run",
      {
          {"dir", [](c of) { return of.run.dir; }, "folder of its logs"},
          {"command", [](c of) { return of.run.command; }, "command line of its program"},
          {"at", &curve_dot::at, "the value, such as its number of workers"},
          {"batches_per_s", [](c of) { return of.run.per_s; }, "measured throughput"},
          {"recorded", &curve_dot::is_recorded, "whether the predictions are made from this run"},
          {"named", [](c of) { return of.run.named; }, "whether the user named its folder", if_any},
      });
  return all;
}

const description<speed_curve>& description_of(const speed_curve*) {
  using c = const speed_curve&;
  static const description<speed_curve> all(
      "curve", "throughput over a quantity",
      {
          {"axis",
           [](c of) { return std::string(axis_names[static_cast<std::size_t>(of.axis.is)]); },
           "the kind of quantity", words{{axis_names.begin(), axis_names.end()}}},
          {"of", [](c of) { return of.axis.name; }, "its stage or operation", if_any},
          {"title", [](c of) { return title_of(of.axis); }, "the quantity in words"},
          {"points", &speed_curve::points, "the predicted curve", if_any},
          {"limits", &speed_curve::limits, "what the throughput cannot exceed", if_any},
          {"measured", &speed_curve::dots, "this run and others of the same program"},
          {"why_not", &speed_curve::why_not, "why nothing is predicted", if_any},
          {"note", &speed_curve::note, "why the curve ends where it does", if_any},
      });
  return all;
}

}  // namespace lotus::tool
