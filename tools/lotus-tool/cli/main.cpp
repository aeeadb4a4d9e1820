#include <malloc.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <thread>

#include "base/terminal/colors.hpp"
#include "base/terminal/line_width.hpp"
#include "base/text.hpp"
#include "cli/cli.hpp"

namespace {

/// Whether the environment allows colors. The user turns colors off by setting NO_COLOR to any
/// value except "" (see no-color.org). Without TERM, or with TERM=dumb, colors are off too.
bool colours_wanted() {
  const char* const no_color = std::getenv("NO_COLOR");  // NOLINT(concurrency-mt-unsafe)
  const char* const terminal = std::getenv("TERM");      // NOLINT(concurrency-mt-unsafe)
  return (no_color == nullptr || *no_color == '\0') && terminal != nullptr &&
         std::string_view(terminal) != "dumb";
}

/// Returns $COLUMNS if set, else the width of the terminal, else 80. Output to a pager or a file is
/// also limited to 80 columns, because people read it; programs can use --csv and --json.
std::size_t columns_of_output(int descriptor) {
  constexpr std::size_t usual = 80;
  const char* const variable = std::getenv("COLUMNS");  // NOLINT(concurrency-mt-unsafe)
  const std::string_view text = variable == nullptr ? "" : variable;
  std::size_t columns = 0;
  if (lotus::tool::read_whole(text, columns) && columns > 0) return columns;
  winsize size{};
  const bool known = ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : usual;
}

/// Limits the heaps of glibc's allocator to one for each CPU, the number of threads that run at a
/// time. By default, there are eight for each CPU, and each keeps memory that its thread has freed.
void use_one_heap_per_cpu() {
#ifdef __GLIBC__
  mallopt(M_ARENA_MAX, static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
#endif
}

}  // namespace

int main(int argc, char** argv) {
  use_one_heap_per_cpu();
  std::ios::sync_with_stdio(false);
  lotus::tool::set_line_width(std::cout, columns_of_output(STDOUT_FILENO));
  lotus::tool::set_line_width(std::cerr, columns_of_output(STDERR_FILENO));
  const bool is_terminal = isatty(STDERR_FILENO) != 0;
  if (colours_wanted()) {
    if (isatty(STDOUT_FILENO) != 0) lotus::tool::allow_colors(std::cout);
    if (is_terminal) lotus::tool::allow_colors(std::cerr);
  }
  return lotus::tool::run_cli(argc, argv, std::cout, std::cerr, is_terminal ? STDERR_FILENO : -1);
}
