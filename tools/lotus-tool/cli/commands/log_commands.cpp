#include "cli/commands/log_commands.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <string>

#include "base/errors.hpp"
#include "cli/arguments.hpp"
#include "cli/commands/map_cli.hpp"
#include "cli/commands/output_commands.hpp"
#include "cli/commands/run_cli.hpp"
#include "cli/commands/top_cli.hpp"
#include "cli/commands/whatif_cli.hpp"
#include "cli/reading_options.hpp"
#include "commands/compare.hpp"
#include "commands/diagnose.hpp"
#include "commands/run_snapshot.hpp"
#include "commands/stats/stats.hpp"
#include "log/folder/lost_records.hpp"

namespace lotus::tool {
namespace {

void add_stats(CLI::App& app, action& chosen) {
  auto options = std::make_shared<stats_options>();
  CLI::App* command = app.add_subcommand("stats", "Tell what operations and batches cost");
  command->footer(
      "Examples:\n"
      "  lotus-tool stats run/ --sort total --limit 5\n"
      "  lotus-tool stats run/ --style profile --sort cumtime --row-limit 10\n"
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
  CLI::Option* style =
      command
          ->add_option_function<std::string>(
              "--style", [options](const std::string&) { options->form = stats_form::profile; },
              "calls and times as Python's cProfile prints them")
          ->check(CLI::IsMember({"profile"}).description(""))
          ->option_text("profile");
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
                                       {"self", stats_order::self},
                                       {"ncalls", stats_order::count},
                                       {"tottime", stats_order::self},
                                       {"cumtime", stats_order::total}}))
      ->option_text("logged|name|count|mean|p50|p90|p99|max|total|self|ncalls|tottime|cumtime");
  command->add_option("--limit,--row-limit", options->limit, "only the first N operations")
      ->check(whole_number(0))
      ->option_text("N");
  command
      ->add_option("--slowest", options->slowest,
                   "how many of the slowest items of stages to tell in full (3)")
      ->check(whole_number(0))
      ->option_text("N");
  add_skipping(*command, options->skip_batches);
  command->add_flag("--group-by-args", options->group_by_args,
                    "an operation for each text of arguments that LOTUS_SCOPE_ARGS gave it");
  command->add_flag(
      "--memory", options->memory,
      "the table tells what operations allocated and what nobody frees, of a run with "
      "'run --memory'");
  command->add_flag("--per-worker", options->per_worker, "the table tells every worker too");
  add_table_options(*command);
  command->add_flag("--remove-outliers", options->remove_outliers,
                    "drop preprocess times below Q1 - 2 (Q3 - Q1)");
  for (const char* const unused : {"--json", "--csv", "--skip-batches", "--per-worker", "--memory",
                                   "--slowest", "--remove-outliers"}) {
    style->excludes(unused);
  }
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
      "  lotus-tool diagnose run/ --fail-if preprocessing-bound   exits 3 if it is\n"
      "The run is replayed with each of its bounds loosened; the largest gain is the verdict:\n"
      "consumer-bound, preprocessing-bound or stage-bound (work 1.25 times faster), order-bound,\n"
      "prefetch-bound or start-up-bound (left out), balanced where nothing gains 5 %.");
  command->add_option("DIR", options->dir, "folder of the logs")->required();
  command
      ->add_option("--fail-if", options->fail_if,
                   "exit 3 when this is the verdict, also several with commas; preprocessing-bound "
                   "takes in stage-bound; exit 4 when there is no verdict")
      ->delimiter(',')
      ->check(CLI::IsMember({"consumer-bound", "preprocessing-bound", "stage-bound", "order-bound",
                             "prefetch-bound", "start-up-bound", "balanced"}))
      ->option_text("VERDICT")
      ->allow_extra_args(false);
  CLI::Option* const json = command->add_flag("--json", options->json, "JSON");
  command
      ->add_flag("--details", options->details,
                 "all checks, suggestions and numbers behind the first screen")
      ->excludes(json);
  add_table_options(*command);
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
  struct texts {
    std::string before, after, fail_above;
  };
  auto given = std::make_shared<texts>();
  CLI::App* command =
      app.add_subcommand("compare", "Tell what became slower from one run, or several, to another");
  command->footer(
      "Examples:\n"
      "  lotus-tool compare before/ after/ --fail-above 5%     exits 3 if it is slower\n"
      "  lotus-tool compare --a old1/ old2/ old3/ --b new1/ new2/ new3/\n"
      "Runs of the same program differ, so give several a side: intervals are then of how their\n"
      "means differ (Welch), and from five a side on there is a permutation test. Of one run a\n"
      "side they are by bootstrap. A slowing counts when it is above the limit and its interval\n"
      "is above 0, or when there was no time to speak of before. There is no interval, and\n"
      "nothing counts, where a side has fewer than 5 values. The delay does not count, it grows\n"
      "when preprocessing gets quicker, nor do CPU time and stages. Loaders are matched by name.");
  CLI::Option* const before =
      command->add_option("BEFORE", given->before, "folder of the logs; may hold several runs");
  CLI::Option* const after = command->add_option("AFTER", given->after, "likewise");
  command->add_option("--a", options->before, "folders of the runs before")
      ->option_text("DIR...")
      ->excludes(before)
      ->excludes(after);
  command->add_option("--b", options->after, "folders of the runs after")
      ->option_text("DIR...")
      ->excludes(before)
      ->excludes(after);
  command
      ->add_option("--fail-above", given->fail_above, "exit 3 when a mean grew by more than this")
      ->check(not_empty())
      ->option_text("5%");
  command->add_flag("--json", options->json, "JSON");
  add_table_options(*command);
  add_skipping(*command, options->skip_batches);
  add_reading(*command, *options);
  command->callback([options, given, &chosen] {
    chosen = [options, given](std::ostream& out, std::ostream& err) {
      if (!given->fail_above.empty()) {
        options->fail_above = parse_share(given->fail_above, "--fail-above");
      }
      if (!given->before.empty()) options->before = {given->before};
      if (!given->after.empty()) options->after = {given->after};
      if (options->before.empty() || options->after.empty()) {
        throw usage_error("two folders are required: BEFORE AFTER, or --a DIR... --b DIR...");
      }
      return run_compare(*options, out, err);
    };
  });
}

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

void add_snapshot(CLI::App& app, action& chosen) {
  auto options = std::make_shared<snapshot_options>();
  CLI::App* command = app.add_subcommand("snapshot", "Put aside what a run has recorded by now");
  command->footer(
      "Example:\n"
      "  lotus-tool snapshot run/     prints run.snapshot-<UTC>-asked, a run's folder\n"
      "The recording process makes it, with all that is complete, and goes on; where none lives,\n"
      "it is made of what the run has left.");
  command->add_option("DIR", options->dir, "folder of the logs")->required();
  command->add_option("--reason", options->reason, "what its name ends in")
      ->capture_default_str()
      ->check(not_empty());
  command->add_option("--prefix", options->prefix, "what the names of the logs begin with")
      ->capture_default_str()
      ->check(not_empty());
  command->callback([options, &chosen] {
    chosen = [options](std::ostream& out, std::ostream& err) {
      return run_snapshot(*options, out, err);
    };
  });
}

}  // namespace

void add_log_commands(CLI::App& app, action& chosen) {
  add_run(app, chosen);
  add_viz(app, chosen);
  add_stats(app, chosen);
  add_map(app, chosen);
  add_diagnose(app, chosen);
  add_whatif(app, chosen);
  add_top(app, chosen);
  add_compare(app, chosen);
#ifdef LOTUS_TOOL_REPORT
  add_report(app, chosen);
#endif
  add_export(app, chosen);
  add_unpack(app, chosen);
  add_snapshot(app, chosen);
  add_recover(app, chosen);
}

}  // namespace lotus::tool
