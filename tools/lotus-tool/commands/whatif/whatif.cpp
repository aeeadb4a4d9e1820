#include "commands/whatif/whatif.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "accelerator/ranks.hpp"
#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "commands/whatif/answers.hpp"
#include "commands/whatif/resolved_change.hpp"
#include "curve/curve.hpp"
#include "curve/curve_print.hpp"
#include "curve/measured_runs.hpp"
#include "describe/description.hpp"
#include "findings/claims.hpp"
#include "findings/diagnosis.hpp"
#include "findings/gains.hpp"
#include "findings/run_limits.hpp"
#include "findings/words.hpp"
#include "model/pipeline/side_data.hpp"
#include "model/run_data.hpp"
#include "replay/prediction.hpp"
#include "replay/recorded/recorded_pipeline.hpp"
#include "replay/single_changes.hpp"
#include "replay/target.hpp"

namespace lotus::tool {
namespace {

/// A run with the simulation that predicts the effects of changes to the run.
struct asked_run {
  run_data run;
  std::optional<diagnosis> found;
  std::optional<recorded_pipeline> also;
  std::shared_ptr<const what_if> asked;
};

class asker {
 public:
  asker(const whatif_options& options, diagnostic_log& diagnostics)
      : options_(options), diagnostics_(diagnostics), others_(options.prefix) {
    if (!options.also.empty()) also_ = find_runs(options.also, options.prefix, diagnostics);
  }

  /// Predicts the effects of the requested changes on one run.
  /// @param keep  receives the objects that the answers refer to.
  whatif_answers ask(const run_files& files, std::vector<std::unique_ptr<asked_run>>& keep) {
    whatif_answers answers;
    answers.dir = files.dir;
    answers.loader = files.loader;
    asked_run& kept = *keep.emplace_back(std::make_unique<asked_run>());
    run_parts parts = checked_parts;
    parts.totals = !options_.change.cache.empty();  // they contain the heap use
    kept.run = read_run_and_waits(files, parts, diagnostics_);
    judgement judged = diagnose_run(kept.run, 0, diagnostics_, predictions::none);
    answers.why_not = why_not_simulated(kept.run, judged);
    if (!answers.why_not.empty()) return answers;
    const diagnosis& d = kept.found.emplace(std::move(*judged.found));
    const recorded_pipeline& pipeline = judged.simulated->recorded();
    pipeline_change change;
    try {
      change = resolved_change(options_.change, pipeline, kept.run, d, answers.notes);
    } catch (const input_error& error) {
      answers.why_not = {"%", {name_word{error.what()}}};
      answers.is_refused = true;
      return answers;
    }
    read_also(files.loader, kept);
    kept.asked = std::move(judged.simulated);
    if (kept.also || options_.recorded_cpus) {
      kept.asked = std::make_shared<const what_if>(
          kept.run, pipeline, kept.also ? &*kept.also : nullptr, options_.recorded_cpus);
    }
    answers.why_not = why_not_predicted(d, *kept.asked);
    if (!answers.why_not.empty()) return answers;
    answers.run = kept.asked.get();
    const claims facts(d);
    answers.limit = limit_words(*kept.asked, kept.run, d.blocked_on);
    answers.has_second_run = kept.also.has_value();
    const auto forbidden = [&facts](const pipeline_change& one) { return facts.why_not(one); };
    pipeline_change one_more;
    one_more.workers = d.workers + 1;
    if (answers.limit.empty()) {
      answers.limit = with_facts("more workers do not help: ", forbidden(one_more));
    }
    if (!options_.curve.empty()) {
      answers.curve = draw_curve(*answers.run, kept.run, d,
                                 axis_named(options_.curve, pipeline, kept.run.names),
                                 others_.others_than(files));
    } else if (options_.feed_consumer || options_.target_per_s) {
      // With --feed-consumer, the target is 99 % of the rate of the consumer: 100 % is impossible,
      // because receiving a batch takes time.
      answers.target_is_consumer = !options_.target_per_s;
      const double target = options_.target_per_s.value_or(0.99 * consumer_rate(*answers.run));
      answers.way = find_path_to_target(
          *answers.run, kept.run.names, target,
          [&forbidden](const pipeline_change& one) { return !forbidden(one).empty(); });
      add(answers, answers.way->settings.value_or(answers.way->best_settings));
    } else if (!(change == pipeline_change{})) {
      add(answers, change);
      if (answers.changes.front().would_be.gain < 1 + worthwhile) return answers;
      answers.why_not = with_facts("this change cannot help: ", forbidden(change));
      if (!answers.why_not.empty()) answers.run = nullptr;
    } else {
      std::vector<pipeline_change> tried = single_changes(answers.run->recorded(), kept.run.names);
      if (!answers.limit.empty()) {
        answers.as_fast = fewest_threads(*answers.run, kept.run.names);
        const bool is_new = answers.as_fast &&
                            std::find(tried.begin(), tried.end(), *answers.as_fast) == tried.end();
        if (is_new) tried.push_back(*answers.as_fast);
      }
      for (const pipeline_change& one : tried) add(answers, one);
      std::vector<answer>& all = answers.changes;
      all.erase(std::remove_if(all.begin(), all.end(),
                               [&](const answer& one) {
                                 return one.would_be.gain >= 1 + hardly_different &&
                                        !forbidden(one.change).empty();
                               }),
                all.end());
      std::stable_sort(all.begin(), all.end(), [](const answer& a, const answer& b) {
        return a.would_be.gain > b.would_be.gain;
      });
    }
    return answers;
  }

 private:
  static void add(whatif_answers& answers, const pipeline_change& change) {
    answer& of = answers.changes.emplace_back();
    of.change = change;
    of.would_be = answers.run->predict(change);
    of.batches_out =
        static_cast<double>(of.would_be.max_out) / answers.run->recorded().items_per_batch;
  }

  /// Reads the loader with the name `loader` from the run that the user gave with --also.
  void read_also(const std::string& loader, asked_run& kept) {
    if (options_.also.empty()) return;
    for (const run_files& files : also_) {
      if (files.loader != loader) continue;
      const run_data run = read_run_and_waits(files, checked_parts, diagnostics_);
      recording recorded = record_pipeline(run);
      if (!recorded.pipeline) throw input_error(files.dir + ": " + recorded.why_not);
      kept.also = std::move(recorded.pipeline);
      return;
    }
    throw input_error(options_.also + ": no run of the same loader");
  }

  const whatif_options& options_;
  diagnostic_log& diagnostics_;
  std::vector<run_files> also_;
  measured_runs others_;
};

/// Returns the exit status. If the user asked for a target and it is out of reach, this is
/// exit_no_answer, so that a script can detect it.
int status_of(const std::vector<whatif_answers>& all, const whatif_options& options) {
  if (!options.target_per_s && !options.feed_consumer) return exit_fine;
  const bool reached = std::all_of(all.begin(), all.end(), [](const whatif_answers& answers) {
    return answers.way && answers.way->settings;
  });
  return reached ? exit_fine : exit_no_answer;
}

}  // namespace

int run_whatif(const whatif_options& options, std::ostream& out, std::ostream& err) {
  diagnostic_log diagnostics(err, options.quiet);
  const std::vector<run_files> runs = find_runs(options.dir, options.prefix, diagnostics);
  asker asker(options, diagnostics);
  std::vector<std::unique_ptr<asked_run>> kept;
  std::vector<whatif_answers> all;
  all.reserve(runs.size());
  for (const run_files& files : runs) all.push_back(asker.ask(files, kept));
  // A change that suits one loader of several, such as threads for one of its stages, is no error.
  const bool any_answered = std::any_of(
      all.begin(), all.end(), [](const whatif_answers& one) { return one.run != nullptr; });
  const auto refused = std::find_if(all.begin(), all.end(),
                                    [](const whatif_answers& one) { return one.is_refused; });
  if (!any_answered && refused != all.end()) throw input_error(text_of(refused->why_not));
  const int status = diagnostics.finish(options.strict);
  if (status != exit_fine) return status;
  if (options.json) {
    const int answered = status_of(all, options);
    print_json(one_or_more(std::move(all)), out);
    return answered;
  }
  if (options.format == "svg") {
    // A picture shows one loader: the first that has a curve.
    const auto drawn = std::find_if(all.begin(), all.end(), [](const whatif_answers& one) {
      return one.curve && one.curve->points.size() > 1;
    });
    if (drawn == all.end()) {
      throw input_error(all.front().dir + ": no predictions: " + text_of(all.front().why_not));
    }
    write_curve_svg(*drawn->curve, drawn->dir, out);
    return exit_fine;
  }
  const char* before = "";
  for (const whatif_answers& answers : all) {
    out << before;
    print_answers(answers, out);
    before = "\n";
  }
  return status_of(all, options);
}

}  // namespace lotus::tool
