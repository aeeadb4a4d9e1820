#include "cli/commands/threads_cli.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>

#include "cli/reading_options.hpp"
#include "threads/commands/threads.hpp"

namespace lotus::tool {

void add_threads(CLI::App& app, action& chosen) {
  auto options = std::make_shared<threads_options>();
  CLI::App* command =
      app.add_subcommand("threads", "Show what the threads of any program do and wait for");
  command->footer(
      "Examples:\n"
      "  lotus-tool run -- ./train args\n"
      "  lotus-tool threads run/\n"
      "  lotus-tool threads run/ --json | jq -r .headline   # the result\n"
      "Reads the samples that 'lotus-tool run' or 'lotus-tool attach' has taken.\n"
      "The program needs no LOTUS_SCOPE or other macro of Lotus.\n"
      "Threads of a program with the same start function are shown in one row.");
  command->add_option("DIR", options->dir, "folder of the run")->required();
  command->add_flag("--json", options->json, "print JSON");
  add_wide(*command);
  command->add_flag("-q,--quiet", options->quiet, "print no notes, only errors and warnings");
  command->callback([options, &chosen] {
    chosen = [options](std::ostream& out, std::ostream& err) {
      return run_threads(*options, out, err);
    };
  });
}

}  // namespace lotus::tool
