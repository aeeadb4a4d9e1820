#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string_view>

#include "base/colours.hpp"
#include "cli/cli.hpp"

namespace {

/// no-color.org: any value but the empty one forbids colours.
bool colours_wanted() {
  const char* const no_color = std::getenv("NO_COLOR");  // NOLINT(concurrency-mt-unsafe)
  const char* const terminal = std::getenv("TERM");      // NOLINT(concurrency-mt-unsafe)
  return (no_color == nullptr || *no_color == '\0') && terminal != nullptr &&
         std::string_view(terminal) != "dumb";
}

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  const bool tells_person = isatty(STDERR_FILENO) != 0;
  if (colours_wanted()) {
    if (isatty(STDOUT_FILENO) != 0) lotus::tool::allow_colours(std::cout);
    if (tells_person) lotus::tool::allow_colours(std::cerr);
  }
  return lotus::tool::run_cli(argc, argv, std::cout, std::cerr, tells_person ? STDERR_FILENO : -1);
}
