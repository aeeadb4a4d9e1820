#include "cli.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <ostream>
#include <string>
#include <system_error>
#include <vector>

#include "arguments.hpp"
#include "colours.hpp"
#include "compare.hpp"
#include "diagnose.hpp"
#include "errors.hpp"
#include "lost_records.hpp"
#include "map/map_cli.hpp"
#include "names.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "self_description.hpp"
#include "stats.hpp"
#include "view.hpp"
#include "viz.hpp"

namespace lotus::tool {
namespace {

/// What the chosen command will do, set while the arguments are read.
using action = std::function<int(std::ostream& out, std::ostream& err)>;

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
    std::string from, to, last;
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
      ->add_option("--only-slowest", options->view.only_slowest,
                   "only the batches with the longest preprocessing")
      ->check(whole_number(1))
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
      "Example:\n"
      "  lotus-tool diagnose run/\n"
      "The first of these that holds is the verdict. consumer-bound: it waits less than 5 % of "
      "its\n"
      "time. preprocessing-bound: the workers make fewer batches than it could take. order-bound:\n"
      "it mostly waits while later batches lie ready. unsteady: none of these.");
  command->add_option("DIR", options->dir, "folder of the logs")->required();
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
      "when preprocessing gets quicker.");
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

/// Commands that tell about the program itself; `app` outlives them.
void add_self_description(CLI::App& app, action& chosen) {
  auto shell = std::make_shared<std::string>();
  CLI::App* completion = app.add_subcommand("completion", "Print a completion script for a shell");
  completion->footer(
      "Examples:\n"
      "  source <(lotus-tool completion bash)\n"
      "  lotus-tool completion fish > ~/.config/fish/completions/lotus-tool.fish");
  completion->add_option("SHELL", *shell, "the shell")->required()->option_text("bash|zsh|fish");
  completion->callback([shell, &app, &chosen] {
    chosen = [shell, &app](std::ostream& out, std::ostream&) {
      out << completion_script(app, *shell);
      return exit_fine;
    };
  });
  CLI::App* man = app.add_subcommand("man", "Print the manual page");
  man->footer("Example:\n  lotus-tool man | man -l -");
  man->callback([&app, &chosen] {
    chosen = [&app](std::ostream& out, std::ostream&) {
      out << man_page(app);
      return exit_fine;
    };
  });
}

int report(std::ostream& err, const char* what, int status) {
  err << styled(err, style::red, "lotus-tool:") << ' ' << printable_line(what) << '\n';
  return status;
}

bool is_quiet(const CLI::App& app) {
  const std::vector<const CLI::App*> commands = app.get_subcommands(nullptr);
  return std::any_of(commands.begin(), commands.end(), [](const CLI::App* command) {
    const CLI::Option* const quiet = command->get_option_no_throw("--quiet");
    return quiet != nullptr && quiet->count() > 0;
  });
}

/// What is wrong about the arguments, and who tells more.
std::string one_line(const CLI::App* app, const CLI::Error& error) {
  std::string command = "lotus-tool";
  for (const CLI::App* at = app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().back();
    command += ' ' + at->get_name();
  }
  return "lotus-tool: " + printable_line(error.what()) + "; '" + command + " --help' tells more\n";
}

}  // namespace

int run_cli(int argc, const char* const* argv, std::ostream& out, std::ostream& err, int terminal) {
  try {
    action chosen;
    CLI::App app("Reads the logs of Lotus, from C++ and from PyTorch", "lotus-tool");
    app.set_version_flag("--version", "lotus-tool " LOTUS_TOOL_VERSION);
    app.require_subcommand(1);
    app.failure_message(one_line);
    app.footer(
        "Exit status: 0 fine, 1 bad input, 2 wrong use. 'lotus-tool COMMAND --help' tells more.");
    add_viz(app, chosen);
    add_stats(app, chosen);
    add_map(app, chosen);
    add_diagnose(app, chosen);
    add_compare(app, chosen);
#ifdef LOTUS_TOOL_REPORT
    add_report(app, chosen);
#endif
    add_recover(app, chosen);
    add_self_description(app, chosen);
    check_command(app, argc, argv);
    int status = exit_fine;
    try {
      app.parse(argc, argv);
      const bool wanted = terminal >= 0 && !is_quiet(app);
      const progress_bar bar(wanted ? terminal : -1);
      status = chosen(out, err);
    } catch (const CLI::ParseError& stop) {
      status = app.exit(stop, out, err) == 0 ? exit_fine : exit_wrong_use;
    }
    out.flush();
    if (!out) throw input_error("standard output: cannot be written");
    return status;
  } catch (const usage_error& error) {
    return report(err, error.what(), exit_wrong_use);
  } catch (const input_error& error) {
    return report(err, error.what(), exit_bad_input);
  } catch (const std::bad_alloc&) {
    return report(err, "out of memory", exit_bad_input);
  } catch (const std::exception& error) {
    return report(err, error.what(), exit_bad_input);
  }
}

}  // namespace lotus::tool
