#include "commands/top/terminal.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <string_view>

namespace lotus::tool {
namespace {

constexpr int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH, SIGPIPE};
volatile std::sig_atomic_t ended = 0;
volatile std::sig_atomic_t stopped = 0;
volatile std::sig_atomic_t resized = 0;

void note(int signal) {
  if (signal == SIGWINCH) {
    resized = 1;
  } else if (signal == SIGTSTP) {
    stopped = 1;
  } else {
    ended = signal;
  }
}

bool write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(STDOUT_FILENO, text.data(), text.size());
    if (n < 0 && errno != EINTR && errno != EAGAIN) return false;
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
    if (n < 0 && ended != 0) return false;
  }
  return true;
}

}  // namespace

bool terminal::is_there() {
  const char* const kind = std::getenv("TERM");  // NOLINT(concurrency-mt-unsafe)
  return kind != nullptr && *kind != '\0' && std::string_view(kind) != "dumb" &&
         isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;
}

terminal::terminal() {
  tcgetattr(STDIN_FILENO, &before_);
  ended = stopped = 0;
  resized = 0;
  // Block the signals that this class handles. Only wait() lets them arrive, while it waits, so
  // they cannot interrupt other code.
  sigset_t ours;
  sigemptyset(&ours);
  for (const int signal : signals) sigaddset(&ours, signal);
  pthread_sigmask(SIG_BLOCK, &ours, &mask_before_);
  struct sigaction action {};
  action.sa_handler = note;
  sigemptyset(&action.sa_mask);
  for (const int signal : signals) {
    sigaction(signal, &action, &actions_before_.emplace_back());
  }
  enter();
}

terminal::~terminal() {
  leave();
  for (std::size_t i = 0; i < std::size(signals); ++i) {
    sigaction(signals[i], &actions_before_[i], nullptr);
  }
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

void terminal::enter() {
  termios raw = before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  // Clear IXON, so that Ctrl-S is an ordinary key and does not stop the output.
  raw.c_iflag &= ~static_cast<tcflag_t>(IXON);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
  write_all("\x1b[?1049h\x1b[?25l\x1b[2J");
  measure();
}

void terminal::leave() {
  write_all("\x1b[0m\x1b[?25h\x1b[?1049l");
  tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
}

/// Stops the process as SIGTSTP would. Until it continues, the terminal has its original state.
void terminal::stop() {
  stopped = 0;
  leave();
  raise(SIGSTOP);
  enter();
}

void terminal::measure() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) return;
  rows_ = size.ws_row;
  columns_ = size.ws_col;
}

terminal_event terminal::wait(std::int64_t max_ns, char& key) {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  constexpr std::int64_t second_ns = 1'000'000'000;
  const std::int64_t wait_ns = std::max<std::int64_t>(max_ns, 0);
  const timespec most{static_cast<time_t>(wait_ns / second_ns),
                      static_cast<long>(wait_ns % second_ns)};
  const int ready = ppoll(&input, 1, &most, &mask_before_);
  if (ended != 0) {
    ended_by_ = ended;
    return terminal_event::quit;
  }
  if (stopped != 0) {
    stop();
    return terminal_event::resized;
  }
  if (resized != 0) {
    resized = 0;
    measure();
    return terminal_event::resized;
  }
  if (ready <= 0) return terminal_event::nothing;
  std::array<char, 8> text{};
  const ssize_t got = ::read(STDIN_FILENO, text.data(), 1);
  if (got <= 0) return terminal_event::quit;  // the terminal was closed
  key = text[0];
  if (key != '\x1b') return terminal_event::key;
  // A key such as an arrow key sends several bytes, which arrive together.
  const ssize_t more = poll(&input, 1, 20) > 0 ? ::read(STDIN_FILENO, text.data(), text.size()) : 0;
  const std::string_view sequence(text.data(),
                                  static_cast<std::size_t>(std::max<ssize_t>(more, 0)));
  if (sequence == "[A" || sequence == "OA") return terminal_event::up;
  if (sequence == "[B" || sequence == "OB") return terminal_event::down;
  return terminal_event::nothing;
}

bool terminal::draw(const std::vector<std::string>& lines) const {
  std::string text = "\x1b[H";
  for (std::size_t i = 0; i < rows_; ++i) {
    text += "\x1b[K";  // clear before writing: a full line leaves the cursor on its last character
    if (i < lines.size()) text += lines[i] + "\x1b[0m";
    if (i + 1 < rows_) text += "\r\n";
  }
  return write_all(text);
}

}  // namespace lotus::tool
