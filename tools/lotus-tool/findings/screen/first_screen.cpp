#include "findings/screen/first_screen.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "base/printable.hpp"
#include "base/terminal/table.hpp"
#include "findings/checks/check.hpp"
#include "findings/claims.hpp"
#include "findings/facts/facts.hpp"
#include "findings/gains.hpp"
#include "findings/run_limits.hpp"
#include "findings/screen/why.hpp"
#include "findings/verdict.hpp"
#include "log/shown_name.hpp"
#include "lotus/folder/log_claims.hpp"
#include "model/calls/call_profile.hpp"
#include "replay/change.hpp"
#include "replay/change_text.hpp"
#include "replay/prediction.hpp"
#include "waits/join/limiting_lock.hpp"

namespace lotus::tool {
namespace {

constexpr std::size_t max_advice = 3;

/// Explains why making one part of the pipeline faster gains less than the part's own speedup:
/// names the part that limits the run after the change, and its throughput. Empty if no other part
/// would limit the run.
/// @param of_several  whether `m` is the first of several suggestions.
phrase next_limit_of(const diagnosis& d, const suggestion& m, bool of_several) {
  constexpr double nearly = 0.9;
  const bool faster_consumer = m.change.step < 1;
  const std::optional<double> most_per_s =
      faster_consumer ? d.preprocessing_capacity : d.consumer_capacity;
  const bool faster_work = faster_consumer || m.change.faster.size() == 1;
  if (!faster_work || d.pushed || !most_per_s || m.would_be.gain > 1.9 ||
      m.would_be.per_s < nearly * *most_per_s || m.would_be.per_s > *most_per_s / nearly) {
    return {};
  }
  const std::string next = !faster_consumer          ? "the consumer"
                           : d.slowest_stage.empty() ? "the workers"
                                                     : "stage " + d.slowest_stage;
  return {"With % change, % would be the bottleneck, at %.",
          {name_word{of_several ? "the first" : "this"}, name_word{next}, rate_word{most_per_s}}};
}

/// Writes the texts of the summary that the user reads first.
class composer {
 public:
  composer(const diagnosis& d, std::size_t rows) : d_(d), rows_(rows) {}

  first_screen compose() {
    s_.title = title();
    if (d_.is) {
      s_.headline = d_.accelerators_busy ? busy_headline() : headline("The consumer");
      if (!d_.accelerators_busy) {
        s_.explained_headline = headline("The consumer, which receives the batches,");
      }
      s_.names_in_flight = d_.is == verdict::prefetch_bound && !d_.makes_itself;
      s_.why = d_.accelerators_busy ? busy_why(d_) : why_and_findings(d_);
    } else {
      no_verdict();
    }
    warnings();
    // Suggestions come from a simulation of the CPUs only. If the accelerator is the bottleneck,
    // they would not help.
    if (!d_.accelerators_busy) {
      advice();
      phrase& assumed = s_.assumption;
      if (!advised_.empty()) assumed = next_limit_of(d_, *advised_.front(), advised_.size() > 1);
      if (!s_.advice.empty() && d_.warnings.empty() && mostly_blocked(d_) && d_.needs_cpus) {
        assumed.add(assumed.empty() ? "" : " ").add("The predictions assume that ");
        assumed.add(free_cpus_words(d_.others_cpus, d_.cpus)).add(".");
      }
      not_worth();
    }
    if (d_.is && !d_.predicted && d_.is != verdict::hand_over_bound) {
      s_.assumption = {"The simulation does not explain this run, so no change is predicted."};
    }
    s_.where = path_rows(d_.path, rows_);
    s_.slowest = slowest();
    s_.slowest_target = slowest_target();
    return std::move(s_);
  }

 private:
  phrase title() const {
    phrase text{"%", {name_word{d_.dir}}};
    if (!d_.loader.empty()) text.add(" (loader '%')", {name_word{d_.loader}});
    if (!d_.operations.empty()) {
      text.add(": % of %", {count_word{d_.operations.calls, "call", "calls"},
                            count_word{d_.operations.operations, "operation", "operations"}});
      if (d_.recorded_ns > 0) {
        text.add(" in %", {time_word{static_cast<double>(d_.recorded_ns)}});
      }
      return text;
    }
    text.add(": %", {count_word{d_.received, "batch", "batches"}});
    if (d_.run_ns > 0) {
      text.add(" in % (%)", {time_word{d_.run_ns},
                             rate_word{static_cast<double>(d_.received) * 1e9 / d_.run_ns}});
    }
    if (d_.makes_itself && !d_.on_demand) {
      text.add(", no workers");
    } else if (d_.thread_for_each) {
      text.add(", a thread for each, % at once", {count_word{d_.workers}});
    } else if (d_.workers > 0 && d_.living_workers > d_.workers) {
      text.add(", % workers, % at once", {count_word{d_.living_workers}, count_word{d_.workers}});
    } else if (d_.workers > 0) {
      text.add(", %", {count_word{d_.workers, "worker", "workers"}});
    }
    if (d_.cpus) text.add(", %", {count_word{*d_.cpus, "CPU", "CPUs"}});
    return text;
  }

  phrase headline(const char* consumer) const {
    const bool lacks_cpus = d_.is == verdict::preprocessing_bound && claims(d_).lacks_cpus();
    const finding* const reason = reason_of(d_);
    const bool is_titled = reason != nullptr && !reason->title.empty();
    phrase text{lacks_cpus ? "The CPUs are the bottleneck"
                           : std::string(is_titled ? reason->title : row_of(*d_.is).title)};
    if (d_.is == verdict::stage_bound) text.with.emplace_back(name_word{d_.stage});
    text.add(" (%). ", {name_word{std::string(verdict_name(*d_.is))}});
    if (d_.pushed) {
      text.add("Batches leave the pipeline with its last stage, at %.", {rate_word{d_.steady}});
    } else {
      text.add("% waited for data % of its time.",
               {name_word{consumer}, share_word{d_.wait_share}});
    }
    return text;
  }

  /// Returns the headline of a run whose bottleneck is the accelerator according to its trace.
  static phrase busy_headline() {
    return {
        "The accelerator is the bottleneck: it is busy. The input pipeline is not the problem."};
  }

  void no_verdict() {
    const auto first =
        std::find_if(d_.checks.begin(), d_.checks.end(), [](const check& c) { return c.unsafe; });
    if (first == d_.checks.end()) {
      s_.headline = phrase{"No verdict: "}.add(d_.why_silent).add(".");
      s_.why = why_and_findings(d_);
    } else {
      s_.headline = phrase{"No verdict: "}.add(first->text).add(".");
      s_.why = phrase{"To do: "}.add(first->to_do).add(".");
      for (auto next = first + 1; next != d_.checks.end(); ++next) {
        if (next->unsafe) s_.warnings.push_back(next->text);
      }
    }
  }

  void warnings() {
    s_.warnings.insert(s_.warnings.end(), d_.warnings.begin(), d_.warnings.end());
    for (const check& c : d_.checks) {
      if (!c.unsafe) s_.warnings.push_back(c.text);
    }
  }

  /// Returns the gain at the lower end of the prediction's confidence interval.
  static double min_gain(const prediction& p) {
    return p.low > 0 && p.per_s > 0 ? p.gain * p.low / p.per_s : p.gain;
  }
  static double max_gain(const prediction& p) {
    return p.low > 0 && p.per_s > 0 ? p.gain * p.high / p.per_s : p.gain;
  }

  /// Returns whether a change gains about as much as predicted, whatever the recording leaves open.
  static bool is_sure(const suggestion& m) { return min_gain(m.would_be) > 1 && !m.only_if; }

  /// Returns whether a suggestion contradicts the verdict. The summary of a consumer-bound run says
  /// that building batches faster would not help, so it must not contain a suggestion that may gain
  /// nothing.
  bool contradicts_verdict(const suggestion& m) const {
    return d_.is == verdict::consumer_bound && !m.change.cpus && min_gain(m.would_be) <= 1;
  }

  /// Returns whether a change may cost more time than it probably saves, and no reason is known.
  static bool says_little(const suggestion& m) {
    return 1 / min_gain(m.would_be) - 1 > 1 - 1 / m.would_be.gain && !m.only_if;
  }

  /// Returns the share of the run time that a change saves, which counts less if the change is more
  /// than a number to set.
  static double worth(const suggestion& m) {
    static constexpr double weights[] = {1, 0.8, 0.6};  // of a setting, of code, of hardware
    return (1 - 1 / m.would_be.gain) * weights[static_cast<std::size_t>(effort_of(m.change))];
  }

  /// Whether a change makes the part faster that takes longer and longer, which no other mends.
  bool is_of_growing(const suggestion& m) const {
    return std::any_of(m.change.faster.begin(), m.change.faster.end(),
                       [this](const auto& part) { return part.first == d_.growing; });
  }

  /// Lists the suggestions: first those that certainly gain, then those that may gain nothing.
  void advice() {
    for (const std::vector<suggestion>* const suggestions : {&d_.suggestions, &d_.possible}) {
      for (const suggestion& m : *suggestions) {
        const bool shown = m.would_be.gain > 1 && !contradicts_verdict(m) && !says_little(m);
        if (shown) advised_.push_back(&m);
      }
    }
    if (d_.faster_step) advised_.push_back(&*d_.faster_step);
    std::stable_sort(advised_.begin(), advised_.end(),
                     [this](const suggestion* a, const suggestion* b) {
                       const bool a_is_sure = is_sure(*a);
                       if (a_is_sure != is_sure(*b)) return a_is_sure;
                       const bool a_grows = is_of_growing(*a);
                       if (a_grows != is_of_growing(*b)) return a_grows;
                       return worth(*a) > worth(*b);
                     });
    if (advised_.size() > max_advice) advised_.resize(max_advice);
    for (const suggestion* const m : advised_) {
      const prediction& p = m->would_be;
      s_.advice.push_back({m, is_sure(*m), d_.run_ns, d_.run_ns / p.gain, d_.run_ns / max_gain(p),
                           d_.run_ns / min_gain(p), target_of_change(m->change)});
      const bool ahead = m->change.own_thread && d_.living_workers > 1 &&
                         m->change.workers.value_or(1) <= d_.living_workers;
      s_.names_in_flight = s_.names_in_flight || m->change.prefetch || m->change.in_flight || ahead;
    }
  }

  /// Returns the operation or stage that a change makes faster. A change of settings affects the
  /// waits for batches, so the batches are returned for it.
  shown_target target_of_change(const pipeline_change& change) const {
    shown_target to;
    if (change.faster.size() == 1) {
      to.name = change.faster.begin()->first;
      to.what = shown_target::kind::operation;
      for (const path_share& share : d_.path.shares) {
        if (share.kind == path_kind::stage && share.name == to.name) {
          to.what = shown_target::kind::stage;
        }
      }
    } else if (change.threads.size() == 1) {
      to.name = change.threads.begin()->first;
      to.what = shown_target::kind::stage;
    } else {
      to.what = shown_target::kind::batches;
    }
    return to;
  }

  template <class Has>
  bool is_advised(Has&& has) const {
    return std::any_of(advised_.begin(), advised_.end(),
                       [&](const suggestion* m) { return has(m->change); });
  }

  /// Whether building batches uses most of the CPUs, or waits for them.
  bool uses_cpus() const {
    const bool builds = d_.is == verdict::preprocessing_bound || d_.is == verdict::stage_bound;
    const bool all = d_.cpu_ns && *d_.cpu_ns >= 0.7 * d_.run_ns * *d_.cpus;
    return builds && (all || states_of(d_.path).queue >= 0.1);
  }

  /// Lists changes that gain too little, so that the user does not try them. A change that is part
  /// of a suggestion is not listed.
  void not_worth() {
    if (!d_.predicted) return;
    const bool workers = is_advised([](const pipeline_change& c) { return c.workers.has_value(); });
    const bool prefetch = is_advised(
        [](const pipeline_change& c) { return c.prefetch.has_value() || c.in_flight.has_value(); });
    const bool order = is_advised([](const pipeline_change& c) { return c.unordered; });
    if (!workers && d_.more_workers_gain && *d_.more_workers_gain < 1 + worthwhile) {
      phrase text{"more workers"};
      if (d_.limited_by_cpus && d_.cpus && uses_cpus()) {
        *d_.cpus == 1 ? text.add(" (the CPU is the limit)")
                      : text.add(" (the % CPUs are the limit)", {count_word{*d_.cpus}});
      }
      s_.not_worth.push_back(text);
    }
    for (const bound_gain& g : d_.gains) {
      if (g.gain >= 1 + worthwhile / 5) continue;
      // Where each batch has a thread of its own, more threads are more prefetching.
      if (g.bound == verdict::prefetch_bound && !prefetch && !(workers && d_.thread_for_each))
        s_.not_worth.push_back({"more prefetching"});
      if (g.bound == verdict::order_bound && !order)
        s_.not_worth.push_back({"receiving batches in any order"});
      const bool is_cause = d_.is == verdict::consumer_bound || claims(d_).step_holds_lock();
      if (g.bound == verdict::consumer_bound && !d_.pushed && !is_cause)
        s_.not_worth.push_back({"a faster consumer"});
      if (g.bound == verdict::preprocessing_bound) {
        s_.not_worth.push_back({"faster preprocessing"});
      }
    }
  }

  phrase slowest() const {
    if (!d_.operations.empty()) {
      const operation_total& most = d_.operations.largest;
      const double all_ns = d_.operations.self_ns;
      const auto self_ns = static_cast<double>(most.self_ns);
      return phrase{
          "Slowest operation: %, % of the recorded time, % per call; the longest took %",
          {name_word{shown_name(most.name)}, share_word{all_ns > 0 ? self_ns / all_ns : 0},
           time_word{self_ns / static_cast<double>(most.calls)},
           time_word{static_cast<double>(most.max_ns)}}};
    }
    if (d_.slow_samples.empty()) return {};
    return phrase{"Slowest call: "}.add(slow_call(d_, d_.slow_samples.front()));
  }

  shown_target slowest_target() const {
    shown_target to;
    if (!d_.operations.empty()) {
      to.what = shown_target::kind::operation;
      to.name = shown_name(d_.operations.largest.name);
    } else if (!d_.slow_samples.empty()) {
      const slow_sample& s = d_.slow_samples.front();
      to = {shown_target::kind::call, shown_name(s.name), s.at_ns, s.duration_ns, s.file};
    }
    return to;
  }

  const diagnosis& d_;
  std::size_t rows_;
  first_screen s_;
  std::vector<const suggestion*> advised_;
};

}  // namespace

std::string what_of(const shown_advice& advice) {
  return printable_line((advice.is_sure ? "" : "perhaps ") + advice.of->what);
}

std::string condition_of(const shown_advice& advice) {
  if (advice.is_sure) return {};
  return advice.of->only_if ? "only " + text_of(advice.of->condition)
                            : "the 90 % interval includes a gain of zero";
}

std::string change_of(const shown_advice& advice) {
  const std::string condition = condition_of(advice);
  return what_of(advice) + (condition.empty() ? "" : ", " + printable_line(condition));
}

shown_target target_of(const path_share& share) {
  shown_target to{shown_target::kind::range, share.name, share.longest_at_ns, share.longest_ns,
                  share.longest_file};
  if (share.kind == path_kind::operation) to.what = shown_target::kind::operation;
  if (share.kind == path_kind::stage) to.what = shown_target::kind::stage;
  return to;
}

phrase slow_call(const diagnosis& d, const slow_sample& s) {
  phrase text{"%, % (median %), batch %",
              {name_word{shown_name(s.name)}, time_word{static_cast<double>(s.duration_ns)},
               time_word{s.median_ns}, name_word{std::to_string(s.batch)}}};
  if (std::any_of(d.slow_samples.begin(), d.slow_samples.end(),
                  [](const slow_sample& one) { return one.epoch > 0; })) {
    text.add(" of epoch %", {name_word{std::to_string(s.epoch)}});
  }
  // Larger numbers are those of logs that several threads share.
  if (s.worker > lotus::detail::largest_thread_id) return text;
  return text.add(", worker %", {name_word{std::to_string(s.worker)}});
}

phrase many_calls(const diagnosis& d, const std::string& operation) {
  constexpr double many = 3;
  const auto of = std::find_if(d.ops.begin(), d.ops.end(), [&operation](const op_share& op) {
    return shown_name(op.name) == operation;
  });
  if (of == d.ops.end() || of->per_batch < many) return {};
  return {"% calls for each batch", {count_word{std::round(of->per_batch)}}};
}

shown_wait largest_wait(const diagnosis& d) {
  constexpr double mostly = 0.5;
  if (d.is != verdict::preprocessing_bound && d.is != verdict::stage_bound) return {};
  const auto most = std::find_if(d.path.shares.begin(), d.path.shares.end(), is_work);
  if (most == d.path.shares.end() || !most->cpu || !most->cpu->blocked_ns) return {};
  // While it waits for a CPU, it does neither.
  const auto queue_ns = static_cast<double>(most->cpu->run_queue_ns.value_or(0));
  const double without_queue = 1 - queue_ns / std::max(1.0, static_cast<double>(most->ns));
  const std::string text = waiting_text(d.blocked_on, most->name, most->cpu->blocked_ns, most->ns,
                                        mostly * without_queue);
  if (text.empty()) return {};
  // The finding perhaps-a-lock says the same, so do not say it twice.
  if (first_with(names_lock, d.findings) != nullptr) return {most->name, {}};
  phrase told{"%", {name_word{text}}};
  const phrase calls = many_calls(d, most->name);
  if (!calls.empty()) told.add("; ").add(calls);
  return {most->name, told};
}

const finding* reason_of(const diagnosis& d) {
  const auto at = std::find_if(d.findings.begin(), d.findings.end(), [&d](const finding& one) {
    const bool reason = one.has(gives_reason);
    return one.is ? one.is == d.is && (reason || !d.predicted) : reason;
  });
  return at == d.findings.end() ? nullptr : &*at;
}

first_screen first_screen_of(const diagnosis& d, std::size_t rows) {
  return composer(d, rows).compose();
}

}  // namespace lotus::tool
