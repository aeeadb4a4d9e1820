#include "cli/commands/log_commands.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <string>

#include "base/errors.hpp"
#include "cli/arguments.hpp"
#include "cli/commands/attach_cli.hpp"
#include "cli/commands/map_cli.hpp"
#include "cli/commands/mcp_cli.hpp"
#include "cli/commands/output_commands.hpp"
#include "cli/commands/run_cli.hpp"
#include "cli/commands/schema_cli.hpp"
#include "cli/commands/threads_cli.hpp"
#include "cli/commands/top_cli.hpp"
#include "cli/commands/tune_cli.hpp"
#include "cli/commands/whatif_cli.hpp"
#include "cli/reading_options.hpp"
#include "commands/accelerator_command.hpp"
#include "commands/compare.hpp"
#include "commands/diagnose.hpp"
#include "commands/run_snapshot.hpp"
#include "commands/stats/stats.hpp"
#include "log/folder/lost_records.hpp"

namespace lotus::tool {
namespace {

void add_stats(CLI::App& app, action& chosen) {
  auto options = std::make_shared<stats_options>();
  CLI::App* command = app.add_subcommand("stats", "Show how long operations and batches take");
  command->footer(
      "Examples:\n"
      "  lotus-tool stats run/ --sort total --limit 5\n"
      "  lotus-tool stats run/ --style profile --sort cumtime --row-limit 10\n"
      "  lotus-tool stats run/ --json | jq '.runs[0].ops.SLoader.p90_ns'\n"
      "'total' is the sum of the times of all calls.\n"
      "'self' is 'total' without the time in other operations that were called inside.\n"
      "--explain describes every column.\n"
      "Standard deviations are those of the population.\n"
      "Percentiles are interpolated linearly.\n"
      "The wait for a batch that arrived before its turn counts as 0.");
  command->add_option("DIR", options->dirs, "folders of the logs")->required();
  CLI::Option* json = command->add_flag_callback(
      "--json", [options] { options->form = stats_form::json; },
      "print JSON: nanoseconds, not rounded");
  command
      ->add_flag_callback(
          "--csv", [options] { options->form = stats_form::csv; },
          "print CSV: nanoseconds, not rounded")
      ->excludes(json);
  CLI::Option* style =
      command
          ->add_option_function<std::string>(
              "--style", [options](const std::string&) { options->form = stats_form::profile; },
              "print calls and times as Python's cProfile does")
          ->check(known_word({"profile"}))
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
  command->add_option("--limit,--row-limit", options->limit, "show only the first N operations")
      ->check(whole_number(0))
      ->option_text("N");
  command
      ->add_option("--slowest", options->slowest,
                   "show the slowest N batches or items, stage by stage")
      ->check(whole_number(0))
      ->option_text("N");
  add_skipping(*command, options->skip_batches);
  command->add_flag("--group-by-args", options->group_by_args,
                    "one row per operation and LOTUS_SCOPE_ARGS text");
  command->add_flag("--memory", options->memory,
                    "memory use of operations; record it with run --memory");
  command->add_flag("--per-worker", options->per_worker, "also show the times of every worker");
  add_table_options(*command);
  command->add_flag("--remove-outliers", options->remove_outliers,
                    "ignore preprocess times below p25 - 2 (p75 - p25)");
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
  CLI::App* command =
      app.add_subcommand("diagnose", "Find the bottleneck and suggest what to change");
  command->footer(
      "Examples:\n"
      "  lotus-tool diagnose run/\n"
      "  lotus-tool diagnose run/ --fail-if preprocessing-bound   # exits with 3 if so\n"
      "The run is simulated once for each possible bottleneck, with less of it.\n"
      "The consumer's step, preprocessing or a stage becomes 1.25 times as fast.\n"
      "A limit by the order of batches, prefetch depth or start-up is removed.\n"
      "The verdict is the bottleneck whose reduction makes the run fastest.\n"
      "The verdict is 'balanced' if no reduction makes the run 5 % faster.\n"
      "The verdict is 'lock-bound' if preprocessing mostly waits for one lock.\n"
      "--fail-if preprocessing-bound also covers stage-bound and lock-bound.\n"
      "Exit status: 0 = success, 1 = bad input, 2 = usage error.\n"
      "Exit status 3: --fail-if names the verdict.\n"
      "Exit status 4: --fail-if was given and there is no verdict.");
  command->add_option("DIR", options->dir, "folder of the logs")->required();
  command
      ->add_option("--fail-if", options->fail_if,
                   "exit with status 3 if this is the verdict:\n"
                   "consumer-bound, preprocessing-bound, stage-bound,\n"
                   "lock-bound, order-bound, prefetch-bound,\n"
                   "start-up-bound or balanced (several: with commas)")
      ->delimiter(',')
      ->check(known_word({"consumer-bound", "preprocessing-bound", "stage-bound", "lock-bound",
                          "order-bound", "prefetch-bound", "start-up-bound", "balanced"}))
      ->option_text("VERDICT")
      ->allow_extra_args(false);
  CLI::Option* const json = command->add_flag("--json", options->json, "print JSON");
  command->add_flag("--details", options->details, "also print all checks, suggestions and numbers")
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

void add_accelerator(CLI::App& app, action& chosen) {
  auto options = std::make_shared<accelerator_options>();
  CLI::App* command =
      app.add_subcommand("accelerator", "Show why a GPU or other accelerator is idle");
  command->footer(
      "Examples:\n"
      "  lotus-tool accelerator trace.json.gz\n"
      "  lotus-tool accelerator trace.json run/   # also shows which operation was late\n"
      "  lotus-tool accelerator training/         # compares all ranks in the folder\n"
      "  lotus-tool accelerator report.sqlite     # from nsys export --type sqlite\n"
      "A device is idle while none of its streams runs a kernel, copy or memset.\n"
      "Idle time is explained by what the host did before it submitted the next work.\n"
      "The host waited for a batch, copied, synchronized, launched, or did other work.\n"
      "The idle time of each stream is split as HolisticTraceAnalysis does.\n"
      "The verdict is the cause that takes most of the time, if it takes at least 5 %.\n"
      "Of several ranks, the output names the slowest.\n"
      "The slowest rank has the longest time outside communication.\n"
      "The other ranks wait for the slowest one during communication.");
  command
      ->add_option("PATH", options->paths,
                   "traces of PyTorch's profiler (.json, .json.gz),\n"
                   "databases of nsys (.sqlite), folders with traces, or\n"
                   "folders with the logs of the same program")
      ->required();
  command->add_flag("--json", options->json, "print JSON, with every step and batch");
  command->add_flag("--last-step", options->analysis.with_last_step,
                    "include the last profiler step, which may be cut off");
  command->add_flag_callback(
      "--exact", [options] { options->analysis.rounding = time_rounding::exact; },
      "do not round times to whole microseconds");
  add_table_options(*command);
  add_reading(*command, *options);
  command->callback([options, &chosen] {
    chosen = [options](std::ostream& out, std::ostream& err) {
      return run_accelerator(*options, out, err);
    };
  });
}

void add_compare(CLI::App& app, action& chosen) {
  auto options = std::make_shared<compare_options>();
  struct texts {
    std::string before, after, fail_above;
  };
  auto given = std::make_shared<texts>();
  CLI::App* command = app.add_subcommand("compare", "Show what became slower between runs");
  command->footer(
      "Examples:\n"
      "  lotus-tool compare before/ after/ --fail-above 5%     # exits with 3 if slower\n"
      "  lotus-tool compare --a old1/ old2/ old3/ --b new1/ new2/ new3/\n"
      "  lotus-tool compare before/ after/ --format markdown   # for a pull request\n"
      "Runs of one program differ from each other, so give several runs per side.\n"
      "The intervals then cover the difference between the means (Welch's method).\n"
      "From five runs per side on, column p has the result of a permutation test.\n"
      "With one run per side, the intervals come from a bootstrap of its values.\n"
      "--fail-above checks the mean times of operations and the times per batch.\n"
      "A time fails if it grew by more than the limit and its interval is above 0.\n"
      "A time also fails if it was 0 ns before and is not 0 ns now.\n"
      "Nothing fails if throughput rose by more than the limit.\n"
      "With one run per side, throughput must have risen by at least 10 % for that.\n"
      "The reason: more workers, for example, make single operations slower.\n"
      "The delivery delay never fails: it grows when preprocessing becomes faster.\n"
      "CPU times, stages, and rows with fewer than 5 values never fail.\n"
      "Loaders are matched by name.\n"
      "Exit status: 0 = success, 1 = bad input, 2 = usage error.\n"
      "Exit status 3: a time grew by more than --fail-above allows.");
  CLI::Option* const before = command->add_option(
      "BEFORE", given->before, "folder of one or several runs before the change");
  CLI::Option* const after =
      command->add_option("AFTER", given->after, "folder of one or several runs after the change");
  command->add_option("--a", options->before, "folders of the runs before the change")
      ->option_text("DIR...")
      ->excludes(before)
      ->excludes(after);
  command->add_option("--b", options->after, "folders of the runs after the change")
      ->option_text("DIR...")
      ->excludes(before)
      ->excludes(after);
  command
      ->add_option("--fail-above", given->fail_above,
                   "exit with status 3 if a mean time grew more than this")
      ->check(not_empty())
      ->option_text("5%");
  CLI::Option* const json = command->add_flag_callback(
      "--json", [options] { options->form = compare_form::json; }, "print JSON");
  command
      ->add_option("--format", options->form, "markdown: for a pull request; bmf: for bencher.dev")
      ->transform(one_of<compare_form>({{"table", compare_form::table},
                                        {"json", compare_form::json},
                                        {"markdown", compare_form::markdown},
                                        {"bmf", compare_form::bmf}}))
      ->option_text("table|json|markdown|bmf")
      ->excludes(json);
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
        throw usage_error(
            "give two folders: BEFORE AFTER; or several of each: --a BEFORE... --b AFTER...");
      }
      return run_compare(*options, out, err);
    };
  });
}

void add_recover(CLI::App& app, action& chosen) {
  auto options = std::make_shared<recover_options>();
  CLI::App* command =
      app.add_subcommand("recover", "Save the last records of killed processes in the logs");
  command->footer(
      "Example:\n"
      "  lotus-tool recover run/\n"
      "Every record is appended once, even if this command is interrupted.\n"
      "The logs of processes that are still recording are not changed.\n"
      "Other commands of lotus-tool find such records without this command.\n"
      "Other programs, which read only the logs, need it.");
  command->add_option("DIR", options->dir, "folder of the logs")->required();
  command->callback([options, &chosen] {
    chosen = [options](std::ostream& out, std::ostream& err) {
      return run_recover(*options, out, err);
    };
  });
}

void add_snapshot(CLI::App& app, action& chosen) {
  auto options = std::make_shared<snapshot_options>();
  CLI::App* command = app.add_subcommand("snapshot", "Copy what a run has recorded so far");
  command->footer(
      "Example:\n"
      "  lotus-tool snapshot run/     # creates the folder run.snapshot-<UTC>-asked\n"
      "The recording process writes the snapshot, with every complete record.\n"
      "The process then continues to record.\n"
      "If no process is recording, the snapshot is a copy made from the run's files.\n"
      "The name of the new folder is printed.\n"
      "All commands read it like the folder of any run.");
  command->add_option("DIR", options->dir, "folder of the logs")->required();
  command->add_option("--reason", options->reason, "end of the snapshot's name")
      ->capture_default_str()
      ->check(not_empty());
  command->add_option("--prefix", options->prefix, "how log file names start")
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
  add_accelerator(app, chosen);
  add_threads(app, chosen);
  add_attach(app, chosen);
  add_whatif(app, chosen);
  add_tune(app, chosen);
  add_top(app, chosen);
  add_compare(app, chosen);
  add_report(app, chosen);
  add_export(app, chosen);
  add_unpack(app, chosen);
  add_snapshot(app, chosen);
  add_recover(app, chosen);
  add_schema(app, chosen);
  add_mcp(app, chosen);
}

}  // namespace lotus::tool
