// Tests the screen of lotus-tool top in a terminal with 80 x 24 characters, which tmux provides.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "lotus/lotus.hpp"
#include "support.hpp"
#include "tool/tool_test.hpp"

using lotus::tool_test::contains;
using namespace std::chrono_literals;

namespace {

/// Returns whether a condition becomes true within a minute.
template <class Holds>
bool soon(const Holds& holds) {
  for (int i = 0; i < 1200; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(50ms);
  }
  return false;
}

/// A shell in its own terminal.
class pane {
 public:
  explicit pane(const std::string& dir) : server_(dir + "/tmux") {
    tmux("-f /dev/null new-session -d -x 80 -y 24 'PS1=ready: exec sh'");
  }
  ~pane() { tmux("kill-server"); }
  pane(const pane&) = delete;
  pane& operator=(const pane&) = delete;

  std::string tmux(const std::string& command) const {
    const std::string line = "tmux -S '" + server_ + "' " + command + " 2>&1";
    FILE* const out = popen(line.c_str(), "r");
    REQUIRE(out != nullptr);
    std::string text;
    char part[4096];
    for (std::size_t n = 0; (n = fread(part, 1, sizeof(part), out)) > 0;) text.append(part, n);
    pclose(out);
    return text;
  }
  void type(const std::string& text) const { tmux("send-keys -l '" + text + "'"); }
  void press(const std::string& key) const { tmux("send-keys " + key); }
  std::string screen() const { return tmux("capture-pane -p"); }
  /// Waits until the screen shows `text`, for at most a minute. Returns the screen.
  std::string once_it_shows(const std::string& text) const {
    std::string shown;
    soon([&] { return contains(shown = screen(), text); });
    return shown;
  }

 private:
  std::string server_;
};

/// Simulates a training until it is killed: one worker with 5 ms per batch, and steps of 1 ms.
pid_t train(const std::string& prefix, const char* rank) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  setenv("RANK", rank, 1);
  lotus::options o;
  o.log_file = prefix;
  lotus::start(o);
  for (std::int64_t i = 0;; ++i) {
    LOTUS_BATCH_WAIT(i);
    std::thread([i] {
      LOTUS_BATCH_PREPROCESSED(i);
      { LOTUS_SCOPE("Many"); }
      { LOTUS_SCOPE("Many"); }
      LOTUS_SCOPE("Long");
      std::this_thread::sleep_for(5ms);
    }).join();
    LOTUS_BATCH_CONSUMED(i);
    LOTUS_COUNTER("queue", i % 7);
    std::this_thread::sleep_for(1ms);
  }
}

class trainings {
 public:
  explicit trainings(const std::string& dir) {
    pids_.push_back(train(dir + "/a/lotustrace_log", "0"));
    pids_.push_back(train(dir + "/b/lotustrace_log", "1"));
    for (const char* const of : {"/a", "/b"}) {
      REQUIRE(soon([&] {
        return std::filesystem::exists(dir + of) && support::log_files(dir + of, false).size() > 1;
      }));
    }
  }
  ~trainings() {
    for (std::size_t i = 0; i < pids_.size(); ++i) die(i);
  }
  trainings(const trainings&) = delete;
  trainings& operator=(const trainings&) = delete;
  void die(std::size_t which) {
    kill(pids_[which], SIGKILL);
    waitpid(pids_[which], nullptr, 0);
  }

 private:
  std::vector<pid_t> pids_;
};

/// Checks that every line fits on the screen and that nothing was scrolled.
void check_fits(const std::string& screen, std::size_t columns, std::size_t rows) {
  std::size_t lines = 0;
  std::size_t width = 0;
  for (const char c : screen) {
    if (c == '\n') {
      ++lines;
      width = 0;
    } else if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U) {
      ++width;
    }
    CHECK(width <= columns);
  }
  CHECK(lines == rows);
}

std::string first_line(const std::string& screen) {
  return screen.substr(0, screen.find('\n'));
}

}  // namespace

TEST_CASE("top shows two ranks, reacts to keys, and restores the terminal") {
  if (std::system("tmux -V >/dev/null 2>&1") != 0) return lotus_test::skip("no tmux");
  const support::temp_directory place;
  const std::string dir = place.path().string();
  trainings both(dir);
  const pane terminal(dir);
  terminal.once_it_shows("ready:");
  terminal.type("cd " + dir +
                "; stty -g >before; '" LOTUS_TOOL_PROGRAM "' top a b; echo status=$?");
  terminal.press("Enter");

  std::string shown;
  soon([&] {
    shown = terminal.screen();
    const auto has = [&](const char* text) { return contains(shown, text); };
    return has("slowest batches") && has("\n  queue ") && has("q quit") && has("\n  Long ") &&
           has(" batches/s, ") && has("consumer waits ");
  });
  INFO(shown);
  CHECK(contains(shown, "rank 0"));
  CHECK(contains(first_line(shown), "running"));
  CHECK(contains(shown, "consumer waits "));
  CHECK(contains(shown, " batches/s, "));
  CHECK(contains(shown, "preprocess"));
  CHECK(contains(shown, "\n  Long "));
  CHECK(contains(shown, "slowest batches"));
  const std::size_t second_line = shown.find('\n') + 1;
  const std::string verdict =
      shown.substr(second_line, shown.find("\nlast ", second_line) - second_line);
  CHECK((contains(verdict, "-bound") || contains(verdict, "balanced: ") ||
         contains(verdict, "no verdict: ")));
  // The verdict must show no rate, because all rates on the screen must be those of the last
  // seconds. No number may be cut off.
  CHECK_FALSE(contains(verdict, " batches/s"));
  CHECK_FALSE(contains(shown.substr(shown.find('\n')), "…"));
  CHECK(contains(shown, "queue"));
  CHECK(contains(shown, "q quit"));
  CHECK_FALSE(contains(shown, "ready:"));
  CHECK(shown.find("\n  Long ") < shown.find("\n  Many "));
  check_fits(shown, 80, 24);

  terminal.press("c");
  shown = terminal.once_it_shows("(by calls/s)");
  CHECK(shown.find("\n  Many ") < shown.find("\n  Long "));
  terminal.press("t");
  CHECK(contains(terminal.once_it_shows("(by total)"), "(by total)"));

  const std::string first_title = first_line(shown);
  terminal.press("r");
  const auto title = [&] { return first_line(terminal.screen()); };
  CHECK(soon([&] { return contains(title(), "rank 1"); }));
  terminal.press("Up");
  CHECK(soon([&] { return title() == first_title; }));

  terminal.press("p");
  shown = terminal.once_it_shows("paused");
  CHECK(contains(shown, "paused"));
  CHECK(soon([&] {
    shown = terminal.screen();
    std::this_thread::sleep_for(1500ms);
    return terminal.screen() == shown;
  }));
  terminal.press("p");
  CHECK(soon([&] { return terminal.screen() != shown; }));

  for (const auto& [columns, rows] : {std::pair<std::size_t, std::size_t>{60, 16}, {160, 50}}) {
    terminal.tmux("resize-window -x " + std::to_string(columns) + " -y " + std::to_string(rows));
    // The last line, which lists the keys, is drawn after all other lines.
    CHECK(soon([&, rows = rows] {
      const std::string now = terminal.screen();
      const std::size_t keys = now.rfind("sort: s self");
      return keys != std::string::npos &&
             std::count(now.begin(), now.end(), '\n') == static_cast<std::ptrdiff_t>(rows) &&
             now.find('\n', keys) + 1 == now.size();
    }));
    check_fits(terminal.screen(), columns, rows);
  }

  both.die(0);
  shown = terminal.once_it_shows("was killed");
  CHECK(contains(shown, "was killed"));

  terminal.press("q");
  shown = terminal.once_it_shows("status=0");
  CHECK(contains(shown, "status=0"));
  CHECK(contains(shown, "ready:"));  // the previous screen must still be visible
  CHECK_FALSE(contains(shown, "q quit"));
  terminal.type("stty -g >after; cmp before after && echo same");
  terminal.press("Enter");
  shown = terminal.once_it_shows("\nsame");
  CAPTURE(shown);
  CHECK(contains(shown, "\nsame"));
}

TEST_CASE("top restores the terminal if a signal ends or stops it") {
  if (std::system("tmux -V >/dev/null 2>&1") != 0) return lotus_test::skip("no tmux");
  const support::temp_directory place;
  const std::string dir = place.path().string();
  trainings both(dir);
  const pane terminal(dir);
  terminal.once_it_shows("ready:");
  const auto start = [&] {
    terminal.type("clear; sh -c \"echo \\$\\$ >" + dir + "/pid; exec \\$0 top " + dir +
                  "\" " LOTUS_TOOL_PROGRAM "; echo status=$?");
    terminal.press("Enter");
    CHECK(contains(terminal.once_it_shows("q quit"), "q quit"));
  };
  start();
  terminal.press("C-c");
  CHECK(contains(terminal.once_it_shows("status=130"), "status=130"));
  start();
  kill(static_cast<pid_t>(std::stol(lotus::tool_test::read_file(dir + "/pid"))), SIGTERM);
  CHECK(contains(terminal.once_it_shows("status=143"), "status=143"));
  start();
  terminal.press("C-z");
  // A part of "Stopped", which the shell prints.
  CHECK(contains(terminal.once_it_shows("topped"), "topped"));
  CHECK_FALSE(contains(terminal.screen(), "q quit"));
  terminal.type("fg");
  terminal.press("Enter");
  CHECK(contains(terminal.once_it_shows("q quit"), "q quit"));
  terminal.press("q");
  CHECK(contains(terminal.once_it_shows("status="), "status="));
  terminal.type("echo it is $((40 + 2))");
  terminal.press("Enter");
  CHECK(contains(terminal.once_it_shows("it is 42"), "it is 42"));
}
