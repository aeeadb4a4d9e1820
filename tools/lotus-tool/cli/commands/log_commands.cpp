#include "cli/commands/log_commands.hpp"

#include <map>
#include <memory>
#include <ostream>
#include <string>

#include "base/errors.hpp"
#include "cli/arguments.hpp"
#include "commands/accelerator_command.hpp"
#include "commands/compare.hpp"
#include "commands/diagnose.hpp"
#include "commands/run_snapshot.hpp"
#include "commands/stats/stats.hpp"
#include "findings/verdict.hpp"
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
      "  lotus-tool stats run/ --json | jq '.runs[0].ops.SDecode.p90_ns'\n"
      "Terms:\n"
      "An operation is a part of the program that is marked with LOTUS_SCOPE.\n"
      "'total' is the sum of the times of all calls of an operation.\n"
      "'self' is 'total' without the time in other operations that were called inside.\n"
      "A stage (LOTUS_STAGE) is a part of the pipeline with its own threads.\n"
      "An item is a numbered part of a batch, such as one image.\n"
      "The consumer is the thread that receives the batches, such as a training loop.\n"
      "Details:\n"
      "Percentiles, such as p50 (the median), are interpolated linearly.\n"
      "--sort logged keeps the order of the logs.\n"
      "ncalls, tottime and cumtime are cProfile's words for count, self and total.\n"
      "If a batch arrives while the consumer waits for another one, its wait is 0.\n"
      "The standard deviation of n values divides by n, not by n - 1.\n"
      "--explain describes every column.");
  command->add_option("DIR", options->dirs, logs_folders)->required();
  add_json_and_csv(*command, options->form);
  CLI::Option* style =
      command
          ->add_option_function<std::string>(
              "--style", [options](const std::string&) { options->form = stats_form::profile; },
              "print calls and times as Python's cProfile does")
          ->check(known_word({"profile"}))
          ->option_text("profile");
  // cProfile's words, too.
  const std::map<std::string, std::string> other_orders{
      {"ncalls", "count"}, {"tottime", "self"}, {"cumtime", "total"}};
  std::string orders;
  for (const std::string& word : stats_orders()) orders += word + '|';
  add_value(*command, "--sort", options->order, orders + "ncalls|tottime|cumtime",
            "order of the operations")
      ->transform(known_word(stats_orders(), other_orders));
  add_count(*command, "--limit,--row-limit", options->limit, 0, "show only the first N operations");
  add_count(*command, "--slowest", options->slowest, 0,
            "for runs with stages: show the N slowest batches and\n"
            "the N slowest items, with their times in each stage");
  add_skipping(*command, options->skip_batches);
  command->add_flag("--group-by-args", options->group_by_args,
                    "show a row for each set of arguments of an operation\n"
                    "(see LOTUS_SCOPE_ARGS)");
  command->add_flag("--memory", options->memory, "show memory use, recorded with 'run --memory'");
  command->add_flag("--per-worker", options->per_worker, "also show the times of every worker");
  add_table_options(*command);
  command->add_flag("--remove-outliers", options->remove_outliers,
                    "ignore unusually short preprocess times:\n"
                    "those below p25 - 2 * (p75 - p25)");
  for (const char* const unused : {"--json", "--csv", "--skip-batches", "--per-worker", "--memory",
                                   "--slowest", "--remove-outliers"}) {
    style->excludes(unused);
  }
  add_window(*command);
  add_reading(*command, *options);
  runs(*command, chosen, options, run_stats);
}

void add_diagnose(CLI::App& app, action& chosen) {
  auto options = std::make_shared<diagnose_options>();
  CLI::App* command =
      app.add_subcommand("diagnose", "Find the bottleneck and suggest what to change");
  std::string verdicts;
  std::vector<std::string> names;
  for (const verdict_row& v : all_verdicts) {
    names.emplace_back(v.key);
    verdicts += "  " + names.back() + std::string(20 - v.key.size(), ' ').append(v.meaning) + '\n';
  }
  command->footer(
      "Examples:\n"
      "  lotus-tool diagnose run/\n"
      "  lotus-tool diagnose run/ --fail-if preprocessing-bound   # exits with 3 if so\n"
      "  lotus-tool diagnose job/ --ranks   # which rank keeps the others waiting\n"
      "The verdict is the bottleneck, that is, what most limits the run:\n" +
      verdicts +
      "To find the verdict, the run is simulated several times, each with one change.\n"
      "Either the work of the consumer, the workers or a stage is 1.25 times as fast, "
      "or the receiving order, the prefetch limit or the start-up time is removed.\n"
      "The verdict names what was changed in the fastest of these simulated runs.\n"
      "--fail-if preprocessing-bound includes stage-bound and lock-bound.\n"
      "Exit status: 0 = success, 1 = bad input, 2 = usage error.\n"
      "Exit status 3: the verdict is one of those given to --fail-if.\n"
      "Exit status 4: --fail-if is given, but there is no verdict (see the output).");
  command->add_option("DIR", options->dir, logs_folder)->required();
  add_value(*command, "--fail-if", options->fail_if, "VERDICT",
            "exit with status 3 if this is the verdict; several\n"
            "verdicts (listed below) are separated by commas")
      ->delimiter(',')
      ->check(known_word(names))
      ->allow_extra_args(false);
  command->add_flag("--ranks", options->ranks,
                    "compare the ranks of one training: how long steps\n"
                    "wait for batches, and which rank causes it");
  CLI::Option* const json = add_json(*command, options->json);
  command
      ->add_flag("--details", options->details, "also print all warnings, suggestions and numbers")
      ->excludes(json);
  add_table_options(*command);
  add_skipping(*command, options->skip_batches);
  add_window(*command);
  add_reading(*command, *options);
  runs(*command, chosen, options, run_diagnose);
}

void add_accelerator(CLI::App& app, action& chosen) {
  auto options = std::make_shared<accelerator_options>();
  CLI::App* command =
      app.add_subcommand("accelerator", "Show why a GPU or other accelerator is idle");
  command->footer(
      "Examples:\n"
      "  lotus-tool accelerator trace.json.gz\n"
      "  lotus-tool accelerator trace.json run/   # also shows what delayed the batches\n"
      "  lotus-tool accelerator training/         # compares all ranks in the folder\n"
      "  lotus-tool accelerator report.sqlite     # from nsys export --type sqlite\n"
      "Terms:\n"
      "Ranks are the processes of a distributed training job.\n"
      "Details:\n"
      "A device is idle while none of its streams runs a kernel, copy or memset.\n"
      "The cause of idle time is what the host (the CPU) did until it submitted the next "
      "work: it waited for a batch, copied data to the device, waited for the device to "
      "finish, launched kernels (CUDA calls) too slowly, or did something else.\n"
      "The verdict, at the top of the output, is the largest cause of idle time.\n"
      "If devices work for 90 % of the time, or no cause takes more than 5 % of it, the verdict is "
      "device-busy.\n"
      "The idle times of streams are defined as in HolisticTraceAnalysis, a tool for "
      "PyTorch traces.\n"
      "--explain describes every column.\n"
      "The slowest rank is the one that takes the most time without communication.\n"
      "The other ranks wait for it, and this wait is part of their communication.");
  command
      ->add_option("PATH", options->paths,
                   "traces of PyTorch's profiler (.json, .json.gz) or\n"
                   "Nsight Systems databases (.sqlite), or folders of\n"
                   "them; also folders of the program's Lotus logs")
      ->required();
  add_json(*command, options->json);
  command->add_flag("--last-step", options->analysis.with_last_step,
                    "include the last step (a ProfilerStep of the trace),\n"
                    "which may be incomplete");
  add_value(*command, "--skip-steps", options->analysis.skip_steps, "N",
            "leave out the first N steps; without it, only gaps\n"
            "that are clearly start-up are left out");
  add_value(*command, "--rank", options->rank, "NAME",
            "show only this rank (or process) of several");
  command->add_flag("--all", options->all, "print all streams, devices, steps and batches");
  command->add_flag_callback(
      "--exact", [options] { options->analysis.rounding = time_rounding::exact; },
      "do not round times to whole microseconds");
  add_table_options(*command);
  add_reading(*command, *options);
  runs(*command, chosen, options, run_accelerator);
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
      "Terms:\n"
      "A loader is a set of workers, which build batches, with the consumer, such as a "
      "training loop, which receives them.\n"
      "A stage (LOTUS_STAGE) is a part of the pipeline with its own threads.\n"
      "Details:\n"
      "Runs of one program differ from each other, so give several runs per side.\n"
      "Each change has a 95 % confidence interval.\n"
      "With several runs per side, it is computed from the means of the runs (Welch).\n"
      "With one run per side, it is computed from the single calls and batches (bootstrap) "
      "and does not cover differences between runs.\n"
      "With five or more runs per side, column p is the probability that chance alone makes "
      "a difference as large as the measured one (permutation test).\n"
      "--fail-above checks the mean times of operations and the times per batch.\n"
      "A time fails if it grew by more than the limit and the growth is significant.\n"
      "It is significant if the whole 95 % interval of the change is above 0.\n"
      "For example, --fail-above 5% fails for a change of +8 % with the interval +2 to +14 %, "
      "but not with the interval -1 to +17 %.\n"
      "A time also fails if it was 0 ns before and is not 0 ns after.\n"
      "Nothing fails if batches per second rose by more than the limit.\n"
      "With several runs per side, the rise must also be significant.\n"
      "With one run per side, it must also be above 10 %.\n"
      "The reason: more workers make a run faster but its single operations slower.\n"
      "The delivery delay is never counted as slower: finished batches wait longer for the "
      "consumer when preprocessing becomes faster.\n"
      "CPU times, times of stages, and times measured fewer than 5 times never fail.\n"
      "If a program has several loaders, each is compared with that of the same name.\n"
      "Exit status: 0 = success, 1 = bad input, 2 = usage error.\n"
      "Exit status 3: a time grew by more than --fail-above allows.");
  CLI::Option* const before = command->add_option(
      "BEFORE", given->before, "folder of one or several runs before the change");
  CLI::Option* const after =
      command->add_option("AFTER", given->after, "folder of one or several runs after the change");
  add_value(*command, "--a", options->before, "DIR...", "instead of BEFORE: several folders")
      ->excludes(before)
      ->excludes(after);
  add_value(*command, "--b", options->after, "DIR...", "instead of AFTER: several folders")
      ->excludes(before)
      ->excludes(after);
  add_text(*command, "--fail-above", given->fail_above, "PERCENT",
           "exit with status 3 if a mean time grew more than\n"
           "this, such as 5%");
  CLI::Option* const json = add_json(*command, options->form, compare_form::json);
  add_value(*command, "--format", options->form, "table|json|markdown",
            "markdown: for a pull request")
      ->transform(one_of<compare_form>({{"table", compare_form::table},
                                        {"json", compare_form::json},
                                        {"markdown", compare_form::markdown}}))
      ->excludes(json);
  add_table_options(*command);
  add_skipping(*command, options->skip_batches);
  add_window(*command);
  add_reading(*command, *options);
  runs(*command, chosen, options,
       [given](compare_options& of, std::ostream& out, std::ostream& err) {
         if (!given->fail_above.empty()) {
           of.fail_above = parse_share(given->fail_above, "--fail-above");
         }
         if (!given->before.empty()) of.before = {given->before};
         if (!given->after.empty()) of.after = {given->after};
         if (of.before.empty() || of.after.empty()) {
           throw usage_error(
               "give two folders: BEFORE AFTER; or several of each: --a BEFORE... --b AFTER...");
         }
         return run_compare(of, out, err);
       });
}

void add_recover(CLI::App& app, action& chosen) {
  auto options = std::make_shared<recover_options>();
  CLI::App* command =
      app.add_subcommand("recover", "Add the last records of killed processes to the logs");
  command->footer(
      "Examples:\n"
      "  lotus-tool recover run/\n"
      "  lotus-tool recover run/ && grep SDecode run/lotustrace_log_worker_*\n"
      "A killed process leaves its last records in a hidden file next to its logs.\n"
      "The other commands of lotus-tool read this file too.\n"
      "Use 'recover' for other programs, which read only the logs.\n"
      "No record is added twice, even if this command is interrupted and repeated.\n"
      "The logs of processes that are still recording are not changed.");
  command->add_option("DIR", options->dir, logs_folder)->required();
  runs(*command, chosen, options, run_recover);
}

void add_snapshot(CLI::App& app, action& chosen) {
  auto options = std::make_shared<snapshot_options>();
  CLI::App* command = app.add_subcommand("snapshot", "Copy what a run has recorded so far");
  command->footer(
      "Examples:\n"
      "  lotus-tool snapshot run/ --reason slow\n"
      "  lotus-tool snapshot run/   # creates the folder run.snapshot-<UTC time>-asked\n"
      "The recording process writes the snapshot: all records up to this moment.\n"
      "The process then continues to record.\n"
      "If no process is recording, the snapshot is a copy made from the run's files.\n"
      "The name of the new folder is printed.\n"
      "All commands read it like the folder of any run.");
  command->add_option("DIR", options->dir, logs_folder)->required();
  add_text(*command, "--reason", options->reason, "WORD", "last word of the new folder's name")
      ->capture_default_str();
  add_prefix(*command, options->prefix)->check(not_empty());
  runs(*command, chosen, options, run_snapshot);
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
