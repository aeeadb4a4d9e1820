#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>

#include "cli/commands/log_commands.hpp"
#include "cli/reading_options.hpp"
#include "threads/commands/threads.hpp"

namespace lotus::tool {

void add_threads(CLI::App& app, action& chosen) {
  auto options = std::make_shared<threads_options>();
  CLI::App* command = app.add_subcommand("threads", "Show what the threads of a recorded run did");
  command->footer(
      "Examples:\n"
      "  lotus-tool run -- ./train args\n"
      "  lotus-tool threads run/\n"
      "  lotus-tool threads run/ --json | jq -r .headline   # only the summary\n"
      "'lotus-tool run' and 'lotus-tool attach' record samples of what threads do.\n"
      "This command shows how much time the threads ran, and what they waited for.\n"
      "The program needs no macros of Lotus.\n"
      "Threads of one program that began in the same function share a row.");
  command->add_option("DIR", options->dir, "folder that 'lotus-tool run' or 'attach' wrote")
      ->required();
  add_json(*command, options->json);
  add_wide(*command);
  add_quiet(*command, options->quiet);
  command->callback([options, &chosen] {
    chosen = [options](std::ostream& out, std::ostream& err) {
      return run_threads(*options, out, err);
    };
  });
}

}  // namespace lotus::tool
