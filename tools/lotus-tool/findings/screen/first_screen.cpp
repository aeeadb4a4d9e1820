#include "findings/screen/first_screen.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/printable.hpp"
#include "base/terminal/table.hpp"
#include "findings/checks/check.hpp"
#include "findings/diagnosis_text.hpp"
#include "findings/finding.hpp"
#include "findings/gains.hpp"
#include "findings/run_limits.hpp"
#include "findings/screen/path_rows.hpp"
#include "findings/verdict.hpp"
#include "findings/words.hpp"
#include "log/shown_name.hpp"
#include "model/calls/call_profile.hpp"
#include "model/path/critical_path.hpp"
#include "replay/change.hpp"
#include "replay/prediction.hpp"
#include "waits/join/limiting_lock.hpp"

namespace lotus::tool {
namespace {

constexpr std::size_t max_advice = 3;

std::string count_text(std::size_t n, const char* one, const char* many) {
  return std::to_string(n) + ' ' + (n == 1 ? one : many);
}

/// Returns the sentences of a finding, to be told alone.
std::string told(const finding& one) {
  std::string text = text_of(one.because);
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z' && one.because.pattern[0] != '%') {
    text[0] = static_cast<char>(text[0] - 'a' + 'A');
  }
  return one.to_do.empty() ? text : text + ' ' + text_of(one.to_do);
}

/// A sentence for verdicts that may be wrong because the use of an accelerator is unknown.
constexpr const char* unknown_device =
    " To see how busy a GPU or accelerator was, run 'lotus-tool accelerator --help'.";

/// Writes the texts of the summary that the user reads first.
class composer {
 public:
  composer(const diagnosis& d, std::size_t rows) : d_(d), rows_(rows) {}

  first_screen compose() {
    s_.title = title();
    if (d_.is) {
      s_.headline = d_.accelerator_busy ? busy_headline() : headline("The consumer");
      if (!d_.accelerator_busy) {
        s_.explained_headline = headline("The consumer, which receives the batches,");
      }
      s_.names_in_flight = d_.is == verdict::prefetch_bound && !d_.makes_itself;
      s_.why = d_.accelerator_busy ? busy_why() : why_and_findings();
    } else {
      no_verdict();
    }
    warnings();
    // Suggestions come from a simulation of the CPUs only. If the accelerator is the bottleneck,
    // they would not help.
    if (!d_.accelerator_busy) {
      advice();
      if (!advised_.empty())
        s_.assumption = next_limit_text(d_, *advised_.front(), advised_.size() > 1);
      if (!s_.advice.empty() && d_.warnings.empty() && mostly_blocked()) {
        s_.assumption +=
            (s_.assumption.empty() ? "" : " ") +
            ("The predictions assume that " + free_cpus_text(d_.others_cpus, d_.cpus)) + '.';
      }
      not_worth();
    }
    if (d_.is && !d_.predicted && d_.is != verdict::hand_over_bound) {
      s_.assumption = "The simulation does not explain this run, so no change is predicted.";
    }
    s_.where = path_rows(d_.path, rows_);
    s_.slowest = slowest();
    s_.slowest_target = slowest_target();
    return std::move(s_);
  }

 private:
  std::string title() const {
    std::string text = printable_line(d_.dir);
    if (!d_.loader.empty()) text += " (loader '" + printable_line(d_.loader) + "')";
    if (!d_.operations.empty()) {
      text += ": " + count_text(d_.operations.calls, "call", "calls") + " of " +
              count_text(d_.operations.operations, "operation", "operations");
      if (d_.recorded_ns > 0) text += " in " + human_time(static_cast<double>(d_.recorded_ns));
      return text;
    }
    text += ": " + count_text(d_.received, "batch", "batches");
    if (d_.run_ns > 0) {
      text += " in " + human_time(d_.run_ns) + " (" +
              rate(static_cast<double>(d_.received) * 1e9 / d_.run_ns) + ')';
    }
    if (d_.makes_itself && !d_.on_demand) {
      text += ", no workers";
    } else if (d_.workers > 0) {
      text += ", " + count_text(d_.workers, "worker", "workers");
    }
    if (d_.cpus) text += ", " + three_digits(*d_.cpus) + (*d_.cpus == 1 ? " CPU" : " CPUs");
    return text;
  }

  std::string headline(const char* consumer) const {
    const std::string waited =
        d_.pushed ? ". Batches leave the pipeline with its last stage, at " + rate(d_.steady)
                  : std::string(". ") + consumer + " waited for data " +
                        whole_percent(d_.wait_share) + " of its time";
    return verdict_title(*d_.is, printable_line(d_.stage)) + " (" +
           std::string(verdict_name(*d_.is)) + ')' + waited + '.';
  }

  /// Returns the headline of a run whose bottleneck is the accelerator according to its trace.
  static std::string busy_headline() {
    return "The accelerator is the bottleneck: it is busy. The input pipeline is not the problem.";
  }

  std::string busy_why() const {
    std::string text = "The host alone looks " + std::string(verdict_name(*d_.is)) + '.';
    if (d_.wait_share < 0.05) return text;
    return text + " The consumer waited for data " + whole_percent(d_.wait_share) +
           " of its time, but it had launched enough work before.";
  }

  /// Returns the evidence for the verdict, and what else the recording shows.
  std::string why_and_findings() const {
    const finding* const first = reason_of(d_);
    std::string text = why();
    if (first != nullptr) {
      text = "Why: " + text_of(first->because);
      if (!first->to_do.empty()) text += ' ' + text_of(first->to_do);
    }
    std::size_t more = 0;
    constexpr std::size_t most_more = 2;
    for (const finding& one : d_.findings) {
      if (&one == first || one.is) continue;
      if (more++ < most_more) text += (text.empty() ? "" : " ") + told(one);
    }
    return text;
  }

  /// Returns the sentence that gives the evidence for the verdict.
  std::string why() const {
    const bool waits_for_all = d_.makes_itself && *d_.is != verdict::consumer_bound;
    if (waits_for_all && d_.on_demand) {
      return "Why: each batch is built only when the consumer asks for it. No batch is built while "
             "the consumer works.";
    }
    if (waits_for_all) {
      return "Why: batches are built on the consumer's own thread. No batch is built while the "
             "consumer works.";
    }
    switch (*d_.is) {
      case verdict::preprocessing_bound:
        return d_.limit.empty() ? busy_workers() : "Why: " + d_.limit + '.' + after_limit();
      case verdict::stage_bound:
        return "Why: " + (d_.limit_of_stage && !d_.limit.empty() ? d_.limit : stage_evidence(d_)) +
               '.' + after_limit();
      case verdict::lock_bound:
        return "Why: " + lock_text(*d_.lock) + ". " + lock_advice + '.';
      case verdict::consumer_bound:
        return "Why: the consumer's own work (its steps) takes most of the run. Building "
               "batches faster would not help." +
               std::string(d_.accelerator.empty() ? unknown_device : "");
      case verdict::order_bound:
        return "Why: during " + whole_percent(d_.head_of_line_share) +
               " of the waits, a later batch was ready, but not the next one.";
      case verdict::prefetch_bound:
        return "Why: too few batches are in flight, so the threads that build them have to pause.";
      case verdict::hand_over_bound:
        break;
      case verdict::start_up_bound:
        return "Why: the consumer waits mostly for the first batches of an epoch.";
      case verdict::balanced:
        break;
    }
    return "Why: making any one part 1.25 times as fast would gain less than 5 %." +
           std::string(d_.accelerator.empty() && !d_.pushed ? unknown_device : "");
  }

  std::string after_limit() const { return d_.largest_wait.empty() ? "" : ' ' + d_.largest_wait; }

  std::string busy_workers() const {
    if (d_.queued_longer_than_ran) {
      return "Why: " + workers_text() + " wait for a CPU longer than they run.";
    }
    if (!d_.largest_wait.empty()) return "Why: " + d_.largest_wait;
    if (d_.mean_preprocess_ns <= 0) return {};
    const double workers_ns = d_.mean_preprocess_ns / static_cast<double>(d_.workers);
    std::string text = d_.workers == 1
                           ? "Why: the worker needs "
                           : "Why: " + std::to_string(d_.workers) + " workers together need ";
    text += human_time(workers_ns) + " per batch";
    if (d_.mean_step_ns > 0) {
      text += d_.mean_step_ns < workers_ns ? ", the consumer only " : ", the consumer ";
      text += human_time(d_.mean_step_ns);
    }
    return text + '.';
  }

  /// Returns the subject of the sentence that explains the verdict: "the workers", or, for example,
  /// "16 workers share 2 CPUs, so they".
  std::string workers_text() const {
    if (!d_.cpus || static_cast<double>(d_.workers) <= *d_.cpus) return "the workers";
    return count_text(d_.workers, "worker shares ", "workers share ") + three_digits(*d_.cpus) +
           (*d_.cpus == 1 ? " CPU" : " CPUs") + ", so they";
  }

  void no_verdict() {
    const auto first =
        std::find_if(d_.checks.begin(), d_.checks.end(), [](const check& c) { return c.unsafe; });
    if (first == d_.checks.end()) {
      s_.headline = "No verdict: " + printable_line(d_.why_silent) + '.';
    } else {
      s_.headline = "No verdict: " + printable_line(first->text) + '.';
      s_.why = "To do: " + printable_line(first->to_do) + '.';
      for (auto next = first + 1; next != d_.checks.end(); ++next) {
        if (next->unsafe) s_.warnings.push_back(printable_line(next->text));
      }
    }
  }

  void warnings() {
    for (const std::string& text : d_.warnings) s_.warnings.push_back(text);
    for (const check& c : d_.checks) {
      if (!c.unsafe) s_.warnings.push_back(printable_line(c.text));
    }
  }

  std::string time_with(double gain) const { return human_time(d_.run_ns / gain); }

  /// Returns the gain at the lower end of the prediction's confidence interval.
  static double min_gain(const prediction& p) {
    return p.low > 0 && p.per_s > 0 ? p.gain * p.low / p.per_s : p.gain;
  }
  static double max_gain(const prediction& p) {
    return p.low > 0 && p.per_s > 0 ? p.gain * p.high / p.per_s : p.gain;
  }

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
                     [](const suggestion* a, const suggestion* b) {
                       const bool a_gains = min_gain(a->would_be) > 1;
                       const bool b_gains = min_gain(b->would_be) > 1;
                       return a_gains != b_gains ? a_gains : a->would_be.gain > b->would_be.gain;
                     });
    if (advised_.size() > max_advice) advised_.resize(max_advice);
    for (const suggestion* const m : advised_) {
      const prediction& p = m->would_be;
      const std::string what = min_gain(p) > 1 ? m->what : "perhaps " + m->what;
      const std::string condition = condition_of(*m);
      std::string whole = what;
      if (!condition.empty()) whole.append(", ").append(condition);
      s_.advice.push_back({printable_line(whole), printable_line(what), condition, m, time_with(1),
                           time_with(p.gain), time_with(max_gain(p)), time_with(min_gain(p)),
                           target_of_change(m->change)});
      s_.names_in_flight = s_.names_in_flight || m->change.prefetch || m->change.in_flight;
    }
  }

  /// Returns why a suggestion may gain nothing; "" if it certainly gains.
  static std::string condition_of(const suggestion& m) {
    if (min_gain(m.would_be) > 1) return {};
    return m.only_if ? "only " + m.condition : "the 90 % interval includes a gain of zero";
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

  /// Returns whether the threads are blocked for more than half of the critical path. In this case,
  /// the predictions depend on the assumption that a thread gets a CPU as soon as its wait ends.
  bool mostly_blocked() const {
    std::int64_t blocked_ns = 0;
    for (const path_share& share : d_.path.shares) {
      if (share.cpu) blocked_ns += share.cpu->blocked_ns.value_or(0);
    }
    return 2 * blocked_ns > d_.path.run_ns;
  }

  template <class Has>
  bool is_advised(Has&& has) const {
    return std::any_of(advised_.begin(), advised_.end(),
                       [&](const suggestion* m) { return has(m->change); });
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
      std::string text = "more workers";
      if (d_.limited_by_cpus && d_.cpus) {
        text += *d_.cpus == 1 ? " (the CPU is the limit)"
                              : " (the " + three_digits(*d_.cpus) + " CPUs are the limit)";
      }
      s_.not_worth.push_back(text);
    }
    for (const bound_gain& g : d_.gains) {
      if (g.gain >= 1 + worthwhile / 5) continue;
      if (g.bound == verdict::prefetch_bound && !prefetch)
        s_.not_worth.emplace_back("more prefetching");
      if (g.bound == verdict::order_bound && !order)
        s_.not_worth.emplace_back("receiving batches in any order");
      if (g.bound == verdict::consumer_bound && !d_.pushed)
        s_.not_worth.emplace_back("a faster consumer");
      if (g.bound == verdict::preprocessing_bound) {
        s_.not_worth.emplace_back("faster preprocessing");
      }
    }
  }

  std::string slowest() const {
    if (!d_.operations.empty()) {
      const operation_total& most = d_.operations.largest;
      const double all_ns = d_.operations.self_ns;
      const auto self_ns = static_cast<double>(most.self_ns);
      return "Slowest operation: " + printable_line(shown_name(most.name)) + ", " +
             whole_percent(all_ns > 0 ? self_ns / all_ns : 0) + " of the recorded time, " +
             human_time(self_ns / static_cast<double>(most.calls)) +
             " per call; the longest took " + human_time(static_cast<double>(most.max_ns));
    }
    if (d_.slow_samples.empty()) return {};
    const slow_sample& s = d_.slow_samples.front();
    const bool epochs = std::any_of(d_.slow_samples.begin(), d_.slow_samples.end(),
                                    [](const slow_sample& one) { return one.epoch > 0; });
    return "Slowest call: " + printable_line(shown_name(s.name)) + ", " +
           human_time(static_cast<double>(s.duration_ns)) + " (median " + human_time(s.median_ns) +
           "), batch " + std::to_string(s.batch) +
           (epochs ? " of epoch " + std::to_string(s.epoch) : "") + ", worker " +
           std::to_string(s.worker);
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

shown_target target_of(const path_share& share) {
  shown_target to{shown_target::kind::range, share.name, share.longest_at_ns, share.longest_ns,
                  share.longest_file};
  if (share.kind == path_kind::operation) to.what = shown_target::kind::operation;
  if (share.kind == path_kind::stage) to.what = shown_target::kind::stage;
  return to;
}

const finding* reason_of(const diagnosis& d) {
  const auto at = std::find_if(d.findings.begin(), d.findings.end(), [&d](const finding& one) {
    return one.is ? one.is == d.is && (one.instead || !d.predicted) : one.instead;
  });
  return at == d.findings.end() ? nullptr : &*at;
}

first_screen first_screen_of(const diagnosis& d, std::size_t rows) {
  return composer(d, rows).compose();
}

}  // namespace lotus::tool
