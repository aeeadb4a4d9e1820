#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <string>

#include "base/text.hpp"
#include "cli/arguments.hpp"
#include "cli/commands/log_commands.hpp"
#include "cli/reading_options.hpp"
#include "commands/map/collect/probe_runner.hpp"
#include "commands/map/map_attribute.hpp"
#include "commands/map/map_build.hpp"
#include "commands/map/map_run.hpp"
#include "log/window/wanted_part.hpp"
#include "mapping/attribution.hpp"
#include "sampling/commands/map_samples.hpp"

namespace lotus::tool {
namespace {

constexpr const char* mapping_file = "mapping_funcs.json";

/// Adds the flags --json and --csv to a command. The user can give only one of them.
template <class Options>
void add_printing(CLI::App& command, Options& options) {
  add_json_and_csv(command, options.print);
  add_table_options(command);
}

/// Adds the option --rate to a command. If the user gives the option, its value is stored in
/// `rate_hz`; otherwise `rate_hz` keeps its value.
CLI::Option* add_rate(CLI::App& command, double& rate_hz) {
  const auto check = [](const std::string& text) -> std::string {
    double hz = 0;
    if (read_whole(text, hz) && hz >= 1 && hz <= 100000) return {};
    return "'" + text + "' is no rate between 1 and 100000 Hz";
  };
  return add_value(command, "--rate", rate_hz, "HZ", "samples per second of each thread's CPU time")
      ->check(check);
}

/// Returns the path of the mapping file to write (it lists the functions of each operation):
/// `given`, or a default name if `given` is empty and a table is printed, or "" to write no file.
std::string mapping_output(const std::string& given, print_as print) {
  return given.empty() && print == print_as::table ? mapping_file : given;
}

void add_map_build(CLI::App& map, action& chosen) {
  auto options = std::make_shared<map_build_options>();
  CLI::App* command =
      map.add_subcommand("build", "Find in profiler reports which functions each operation calls");
  command->footer(
      "Examples:\n"
      "  lotus-tool map build reports/ -o mapping_funcs.json\n"
      "Writes a mapping: a file that lists the functions of each operation.\n"
      "DIR holds a folder for each operation, or is the folder of one operation.\n"
      "The folder of an operation has a report for each run.\n"
      "Reports can be CSV files of VTune or uProf, or output of perf report -t '|'.\n"
      "Reports can also be callgrind's profiles or samples of the built-in collector.\n"
      "With --json or --csv, a mapping file is written only if -o is given.");
  command->add_option("DIR", options->dirs, "folders of reports")->required();
  add_value(*command, "-o,--output", options->output, "FILE",
            "file for the mapping; default: mapping_funcs.json");
  add_printing(*command, *options);
  add_quiet(*command, options->quiet);
  runs(*command, chosen, options, [](map_build_options& of, std::ostream& out, std::ostream& err) {
    of.output = mapping_output(of.output, of.print);
    return run_map_build(of, out, err);
  });
}

void add_map_attribute(CLI::App& map, action& chosen) {
  auto options = std::make_shared<map_attribute_options>();
  CLI::App* command = map.add_subcommand(
      "attribute", "Compute hardware counters of operations from those of their functions");
  command->footer(
      "Examples:\n"
      "  lotus-tool map attribute --mapping mapping_funcs.json --counters b8.tsv \\\n"
      "      --trace run/\n"
      "  lotus-tool map attribute --mapping mapping_funcs.json \\\n"
      "      --counters b8.tsv b16.tsv --elapsed times.csv\n"
      "Terms:\n"
      "A configuration is a run with certain settings, such as the batch size.\n"
      "An operation is a part of a program that is marked with LOTUS_SCOPE.\n"
      "Details:\n"
      "A table of counters can be VTune's TAB-separated microarchitecture table.\n"
      "It can also be a profile of callgrind, or output of perf report -t '|' or of "
      "'perf stat -x,'.\n"
      "Each of several tables needs its --trace folder or --elapsed row: the one that has "
      "the name of the table's file without extension, or ends in the same number.\n"
      "Counters of a function that several operations call are split among these.\n"
      "--weights elapsed: in proportion to the elapsed times of the operations.\n"
      "--weights mix: in proportion to these times, each multiplied by the function's share "
      "of the operation's samples.");
  const attribution_arguments arguments = add_attribution(*command, options->inputs);
  arguments.mapping->required();
  arguments.counters->required();
  add_value(*command, "--trace", options->inputs.traces, "DIR...",
            "folders of logs, to take the operations' times from\n"
            "instead of --elapsed")
      ->excludes(arguments.elapsed);
  add_prefix(*command, options->inputs.prefix);
  add_printing(*command, *options);
  add_quiet(*command, options->quiet);
  runs(*command, chosen, options, run_map_attribute);
}

void add_map_run(CLI::App& map, action& chosen) {
  auto options = std::make_shared<map_run_options>();
  auto span = std::make_shared<std::string>("0.66ms");
  CLI::App* command =
      map.add_subcommand("run", "Run a test program to find which functions each operation calls");
  command->footer(
      "Examples:\n"
      "  lotus-tool map run --runs 10 --op Decode -- ./probe images/\n"
      "  lotus-tool map run --confidence 0.99 --span 0.3ms -- ./probe images/\n"
      "Terms:\n"
      "The test program, called a probe, runs each operation in a LOTUS_MAP_REGION block.\n"
      "The collector is the profiler that samples the probe.\n"
      "The mapping is the result: a file that lists the functions of each operation.\n"
      "Details:\n"
      "The probe is run several times, because one run has few samples of a function.\n"
      "'builtin' needs only the kernel's permission (kernel.perf_event_paranoid <= 2).\n"
      "The other collectors (perf, callgrind, vtune, uprof) must be installed.\n"
      "With --json or --csv, a mapping file is written only if -o is given.");
  add_value(*command, "--collector", options->collector, collector_names("|"),
            "profiler that collects the samples")
      ->capture_default_str();
  add_rate(*command, options->rate_hz)->default_str("1000, vtune: 100");
  add_repeated(*command, "--op", options->ops, "NAME",
               "sample only this operation; may be repeated");
  CLI::Option* counted = add_count(*command, "--runs", options->runs, 1,
                                   "number of runs of the probe, instead of --confidence");
  add_value(*command, "--confidence", options->confidence, "P",
            "choose the number of runs so that a function that\n"
            "takes --span per run is sampled at least once with\n"
            "this probability (0 to 1)")
      ->capture_default_str()
      ->excludes(counted);
  add_value(*command, "--span", *span, "TIME",
            "find functions that take at least this time in a run")
      ->capture_default_str()
      ->excludes(counted);
  add_value(*command, "-o,--output", options->output, "FILE",
            "file for the mapping; default: mapping_funcs.json");
  add_value(*command, "--reports", options->reports, "DIR",
            "folder for the samples of every run; default: name of\n"
            "the mapping and _reports, as in mapping_funcs_reports");
  add_printing(*command, *options);
  add_quiet(*command, options->quiet);
  command->add_option("PROGRAM", options->program, "the program (probe) and its arguments")
      ->required();
  command->prefix_command(false);
  runs(*command, chosen, options,
       [span](map_run_options& of, std::ostream& out, std::ostream& err) {
         of.span_ns = parse_duration_ns(*span, "--span");
         of.output = mapping_output(of.output, of.print);
         return run_map_run(of, out, err);
       });
}

void add_map_record(CLI::App& map, action& chosen) {
  auto options = std::make_shared<map_record_options>();
  CLI::App* command =
      map.add_subcommand("record", "Run a program and sample its functions for 'map join'");
  command->footer(
      "Examples:\n"
      "  lotus-tool map record -- ./train args\n"
      "  lotus-tool map join run/\n"
      "Sets LOTUS_LOG_FILE unless it is set, so that the program records to run/ "
      "(run-2/, run-3/, ... if run/ is not empty).\n"
      "Sampling needs no change of the program.\n"
      "All its threads and child processes are sampled.\n"
      "The samples are written next to the program's logs.\n"
      "Exit status: that of the program.");
  add_rate(*command, options->rate_hz)->capture_default_str();
  add_value(*command, "--samples", options->output, "FILE",
            "file for the samples; default: next to the logs");
  add_quiet(*command, options->quiet);
  command->add_option("PROGRAM", options->program, "the program and its arguments")->required();
  runs(*command, chosen, options,
       [](const map_record_options& of, std::ostream& /*out*/, std::ostream& err) {
         return run_map_record(of, err);
       });
}

void add_map_join(CLI::App& map, action& chosen) {
  auto options = std::make_shared<map_join_options>();
  CLI::App* command = map.add_subcommand(
      "join", "Show in which functions each operation of a run spends its CPU time");
  command->footer(
      "Examples:\n"
      "  lotus-tool map join run/\n"
      "  lotus-tool map join run/ --json | jq .\n"
      "Terms:\n"
      "An operation is a part of a program that is marked with LOTUS_SCOPE.\n"
      "A sample is the function that a thread ran at one moment.\n"
      "Details:\n"
      "A sample counts for the innermost operation in which its thread was at that moment.\n"
      "Samples come from 'lotus-tool map record' or 'perf record -k CLOCK_MONOTONIC'.");
  command->add_option("DIR", options->dir, logs_folder)->required();
  add_value(*command, "--samples", options->samples, "FILE...",
            "files of samples; default: those next to the logs");
  add_printing(*command, *options);
  add_window(*command);
  add_reading(*command, *options);
  runs(*command, chosen, options, run_map_join);
}

}  // namespace

attribution_arguments add_attribution(CLI::App& command, attribution_inputs& options) {
  attribution_arguments added{};
  added.mapping = add_value(command, "--mapping", options.mapping, "FILE",
                            "file that 'lotus-tool map run' wrote: the functions\n"
                            "that each operation calls");
  added.counters = add_value(command, "--counters", options.counters, "FILE...",
                             "tables of hardware counters of functions, such as\n"
                             "cache misses; one file for each configuration (a run\n"
                             "with other settings)");
  added.elapsed = add_value(command, "--elapsed", options.elapsed, "FILE",
                            "CSV file of the operations' times in seconds; header:\n"
                            "config,OPERATION,...; one row per configuration");
  add_value(command, "--weights", options.weights, "elapsed|mix",
            "how to split a function's counters among operations:\n"
            "by elapsed time, or by elapsed time x the function's\n"
            "share of the operation's samples (mix)")
      ->transform(one_of<weighting>({{"elapsed", weighting::elapsed}, {"mix", weighting::mix}}))
      ->default_str("elapsed");
  return added;
}

void add_map(CLI::App& app, action& chosen) {
  CLI::App* map = app.add_subcommand("map", "Show functions and hardware counters of operations");
  map->footer(
      "Terms:\n"
      "An operation is a part of a program that is marked with LOTUS_SCOPE.\n"
      "Details:\n"
      "'lotus-tool map COMMAND --help' describes a command.");
  map->require_subcommand(1);
  add_map_run(*map, chosen);
  add_map_build(*map, chosen);
  add_map_attribute(*map, chosen);
  add_map_record(*map, chosen);
  add_map_join(*map, chosen);
}

}  // namespace lotus::tool
