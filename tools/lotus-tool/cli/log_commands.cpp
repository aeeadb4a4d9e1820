#include "cli/log_commands.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <system_error>
#include <vector>

#include "base/errors.hpp"
#include "cli/arguments.hpp"
#include "cli/map_cli.hpp"
#include "cli/whatif_cli.hpp"
#include "compare/compare.hpp"
#include "diagnose/diagnose.hpp"
#include "log/lost_records.hpp"
#include "report/report.hpp"
#include "stats/stats.hpp"
#include "viz/view.hpp"
#include "viz/viz.hpp"

namespace lotus::tool {
namespace {

/// Options that every command which reads logs has.
template <class Options>
void add_reading(CLI::App& command, Options& options) {
  command.add_option("--prefix", options.prefix, "what the names of the logs begin with")
      ->capture_default_str();
  command.add_flag("--strict", options.strict, "fail on any malformed line (status 1)");
  command.add_flag("-q,--quiet", options.quiet, "no notes; errors and warnings stay");
}

void add_skipping(CLI::App& command, std::size_t& skip_batches) {
  command
      .add_option("--skip-batches", skip_batches,
                  "leave the first N batches of every epoch out of what is told per batch")
      ->check(whole_number(0))
      ->option_text("N");
}

void add_viz(CLI::App& app, action& chosen) {
  struct texts {
    std::string from, to, last, only_slowest;
  };
  auto options = std::make_shared<viz_options>();
  auto given = std::make_shared<texts>();
  CLI::App* command = app.add_subcommand("viz", "Draw runs for a trace viewer");
  command->footer(
      "Examples:\n"
      "  lotus-tool viz run/ -o trace.json      then open trace.json at https://ui.perfetto.dev\n"
      "  lotus-tool viz run/ -o slow.json --only-slowest 5\n"
      "  lotus-tool viz run/ -o part.pftrace --format perfetto --from batch:10 --to batch:20\n"
      "DIR may hold one run, or several in subfolders: each becomes a process group. A PyTorch\n"
      "profiler trace (.json, .json.gz) that lies beside the logs is merged; without -o the "
      "result\n"
      "is written beside it, its name with _fine or _coarse.");
  command->add_option("DIR", options->dir, "folder of the logs")->required();
  command->add_option("-o,--output", options->output, "file to write; - is standard output");
  command->add_option("--format", options->format, "chrome, perfetto or speedscope")
      ->transform(one_of<viz_format>({{"chrome", viz_format::chrome},
                                      {"perfetto", viz_format::perfetto},
                                      {"speedscope", viz_format::speedscope}}))
      ->default_str("chrome")
      ->option_text("chrome|perfetto|speedscope");
  command->add_flag("--gzip", options->gzip, "compress the output, as for a FILE in .gz");
  command->add_flag("--coarse", options->coarse, "batches only, no operations");
  command
      ->add_option("--from", given->from,
                   "begin here: seconds from the run's start (2.5, 300ms), or batch:INDEX, "
                   "batch:EPOCH/INDEX")
      ->check(not_empty());
  command->add_option("--to", given->to, "end here, in the same way; a batch is shown whole")
      ->check(not_empty());
  command->add_option("--last", given->last, "only the end of the run, such as 5s")
      ->check(not_empty());
  command->add_option("--op", options->view.ops, "only this operation; may be repeated")
      ->allow_extra_args(false);
  command
      ->add_option("--only-slowest", given->only_slowest,
                   "only the batches with the longest preprocessing; with STAGE:N the items, or "
                   "batches, that took longest in that stage")
      ->check(not_empty())
      ->option_text("N");
  command->add_option("--torch-trace", options->torch_trace, "merge into this profiler trace")
      ->option_text("FILE");
  command->add_flag("--compat", options->compat,
                    "the events that the original's script writes, name for name");
  add_reading(*command, *options);
  command->callback([options, given, &chosen] {
    chosen = [options, given](std::ostream& out, std::ostream& err) {
      if (!given->from.empty()) options->view.from = parse_window_end(given->from, "--from");
      if (!given->to.empty()) options->view.to = parse_window_end(given->to, "--to");
      if (!given->last.empty()) {
        options->view.last_ns = parse_duration_ns(given->last, "--last");
        if (*options->view.last_ns == 0) throw usage_error("--last: must be more than 0");
      }
      if (!given->only_slowest.empty()) {
        options->view.only_slowest = parse_slowest(given->only_slowest);
      }
      if (std::filesystem::path(options->output).extension() == ".gz") options->gzip = true;
      return run_viz(*options, out, err);
    };
  });
}

void add_stats(CLI::App& app, action& chosen) {
  auto options = std::make_shared<stats_options>();
  CLI::App* command = app.add_subcommand("stats", "Tell what operations and batches cost");
  command->footer(
      "Examples:\n"
      "  lotus-tool stats run/ --sort total --limit 5\n"
      "  lotus-tool stats run/ --json | jq '.runs[0].ops.SLoader.p90_ns'\n"
      "Standard deviations are the population's, percentiles interpolate linearly, and an\n"
      "out-of-order arrival counts as a wait of 0.");
  command->add_option("DIR", options->dirs, "folders of the logs")->required();
  CLI::Option* json = command->add_flag_callback(
      "--json", [options] { options->form = stats_form::json; }, "JSON in ns, nothing rounded");
  command
      ->add_flag_callback(
          "--csv", [options] { options->form = stats_form::csv; }, "CSV in ns, nothing rounded")
      ->excludes(json);
  command->add_option("--sort", options->order, "order of the operations")
      ->transform(one_of<stats_order>({{"logged", stats_order::logged},
                                       {"name", stats_order::name},
                                       {"count", stats_order::count},
                                       {"mean", stats_order::mean},
                                       {"p50", stats_order::p50},
                                       {"p90", stats_order::p90},
                                       {"p99", stats_order::p99},
                                       {"max", stats_order::max},
                                       {"total", stats_order::total},
                                       {"self", stats_order::self}}))
      ->option_text("logged|name|count|mean|p50|p90|p99|max|total|self");
  command->add_option("--limit", options->limit, "only the first N operations")
      ->check(whole_number(0))
      ->option_text("N");
  command
      ->add_option("--slowest", options->slowest,
                   "how many of the slowest items of stages to tell in full (3)")
      ->check(whole_number(0))
      ->option_text("N");
  add_skipping(*command, options->skip_batches);
  command->add_flag("--per-worker", options->per_worker, "the table tells every worker too");
  command->add_flag("--remove-outliers", options->remove_outliers,
                    "drop preprocess times below Q1 - 2 (Q3 - Q1)");
  add_reading(*command, *options);
  command->callback([options, &chosen] {
    chosen = [options](std::ostream& out, std::ostream& err) {
      return run_stats(*options, out, err);
    };
  });
}

void add_diagnose(CLI::App& app, action& chosen) {
  auto options = std::make_shared<diagnose_options>();
  CLI::App* command = app.add_subcommand("diagnose", "Tell what a run waits for, and what to do");
  command->footer(
      "Examples:\n"
      "  lotus-tool diagnose run/\n"
      "  lotus-tool diagnose run/ --fail-if preprocessing-bound    exits 3 when it is: for CI\n"
      "The run is replayed with each of its bounds loosened; the largest gain is the verdict:\n"
      "consumer-bound, preprocessing-bound or stage-bound (work 1.25 times faster), order-bound,\n"
      "prefetch-bound or start-up-bound (left out), balanced where nothing gains 5 %.");
  command->add_option("DIR", options->dir, "folder of the logs")->required();
  command
      ->add_option("--fail-if", options->fail_if,
                   "exit 3 when this is the verdict, also several with commas; preprocessing-bound "
                   "takes in stage-bound")
      ->delimiter(',')
      ->check(CLI::IsMember({"consumer-bound", "preprocessing-bound", "stage-bound", "order-bound",
                             "prefetch-bound", "start-up-bound", "balanced"}))
      ->option_text("VERDICT")
      ->allow_extra_args(false);
  command->add_flag("--json", options->json, "JSON");
  add_skipping(*command, options->skip_batches);
  add_reading(*command, *options);
  command->callback([options, &chosen] {
    chosen = [options](std::ostream& out, std::ostream& err) {
      return run_diagnose(*options, out, err);
    };
  });
}

void add_compare(CLI::App& app, action& chosen) {
  auto options = std::make_shared<compare_options>();
  auto fail_above = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("compare", "Tell what became slower between two runs");
  command->footer(
      "Example:\n"
      "  lotus-tool compare before/ after/ --fail-above 5%     exits 3 when something is slower\n"
      "Intervals are by bootstrap; a slowing counts when it is above the limit and its interval\n"
      "is above 0, or when there was no time to speak of before. There is no interval, and\n"
      "nothing counts, where a side has fewer than 5 values. The delay does not count, it grows\n"
      "when preprocessing gets quicker, nor do CPU time and stages. Loaders are matched by name.");
  command->add_option("BEFORE", options->before, "folder of the logs")->required();
  command->add_option("AFTER", options->after, "folder of the logs")->required();
  command->add_option("--fail-above", *fail_above, "exit 3 when a mean grew by more than this")
      ->check(not_empty())
      ->option_text("5%");
  command->add_flag("--json", options->json, "JSON");
  add_skipping(*command, options->skip_batches);
  add_reading(*command, *options);
  command->callback([options, fail_above, &chosen] {
    chosen = [options, fail_above](std::ostream& out, std::ostream& err) {
      if (!fail_above->empty()) options->fail_above = parse_share(*fail_above, "--fail-above");
      return run_compare(*options, out, err);
    };
  });
}

#ifdef LOTUS_TOOL_REPORT
/// Of "--counters A B runs/" B and runs/ are read as folders, for the option cannot tell where its
/// files end; but only runs/ is one.
void take_counters(report_options& options) {
  std::vector<std::string>& counters = options.hardware.counters;
  if (counters.empty()) return;
  const auto files =
      std::stable_partition(options.dirs.begin(), options.dirs.end(), [](const std::string& path) {
        std::error_code ignored;
        return !std::filesystem::is_regular_file(path, ignored);
      });
  counters.insert(counters.end(), files, options.dirs.end());
  options.dirs.erase(files, options.dirs.end());
  if (options.dirs.empty()) throw usage_error("DIR is required: the folder of the logs");
}

void add_report(CLI::App& app, action& chosen) {
  auto options = std::make_shared<report_options>();
  CLI::App* command = app.add_subcommand("report", "Make one page that shows everything");
  command->footer(
      "Example:\n"
      "  lotus-tool report runs/ -o report.html      then open report.html in a browser\n"
      "The page needs no network. Each run in a subfolder is a configuration of its own. "
      "Functions\n"
      "behind operations come from samples of 'lotus-tool map record' beside the logs, or from a\n"
      "mapping; hardware counters from tables as for 'map attribute'.");
  command->add_option("DIR", options->dirs, "folders of the logs")->required();
  const attribution_arguments arguments = add_attribution(*command, options->hardware);
  arguments.counters->needs(arguments.mapping)->allow_extra_args(false);
  arguments.elapsed->needs(arguments.counters);
  command->add_option("-o,--output", options->output, "file to write; - is standard output")
      ->required();
  add_skipping(*command, options->skip_batches);
  add_reading(*command, *options);
  command->callback([options, &chosen] {
    chosen = [options](std::ostream& out, std::ostream& err) {
      take_counters(*options);
      return run_report(*options, out, err);
    };
  });
}
#endif

void add_recover(CLI::App& app, action& chosen) {
  auto options = std::make_shared<recover_options>();
  CLI::App* command = app.add_subcommand("recover", "Put into the logs what killed processes left");
  command->footer(
      "Example:\n"
      "  lotus-tool recover run/\n"
      "Every record is appended exactly once, however often this runs or is interrupted. "
      "Processes\n"
      "that are still recording are left alone. Other commands count such records in by "
      "themselves.");
  command->add_option("DIR", options->dir, "folder of the logs")->required();
  command->callback([options, &chosen] {
    chosen = [options](std::ostream& out, std::ostream& err) {
      return run_recover(*options, out, err);
    };
  });
}

}  // namespace

void add_log_commands(CLI::App& app, action& chosen) {
  add_viz(app, chosen);
  add_stats(app, chosen);
  add_map(app, chosen);
  add_diagnose(app, chosen);
  add_whatif(app, chosen);
  add_compare(app, chosen);
#ifdef LOTUS_TOOL_REPORT
  add_report(app, chosen);
#endif
  add_recover(app, chosen);
}

}  // namespace lotus::tool
