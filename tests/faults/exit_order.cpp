// A program that records operations from before main() until after the destructors of all static
// objects. Usage: exit_order [stop].

#include <stdlib.h>

#include <cstring>
#include <thread>

#include "lotus/lotus.hpp"

namespace {

struct recorder {
  const char* begin;
  const char* end;
  recorder(const char* b, const char* e) : begin{b}, end{e} { LOTUS_SCOPE_DYNAMIC(begin); }
  ~recorder() { LOTUS_SCOPE_DYNAMIC(end); }
};

// These objects are constructed before all static objects of the library and destroyed after them.
const recorder early{"StaticConstructor", "StaticDestructor"};
thread_local const recorder of_thread{"ThreadLocalConstructor", "ThreadLocalDestructor"};

void record_late() {
  LOTUS_SCOPE("Late");
}

__attribute__((destructor(101))) void last_of_all() {
  LOTUS_SCOPE("LastOfAll");
}

}  // namespace

int main(int argc, char** argv) {
  static const recorder function_static{"FunctionStatic", "FunctionStaticDestructor"};
  (void)of_thread.begin;
  std::atexit([] { LOTUS_SCOPE("AtExit"); });
  at_quick_exit([] { LOTUS_SCOPE("AtQuickExit"); });
  { LOTUS_SCOPE("Main"); }
  std::thread{[] { LOTUS_SCOPE("Thread"); }}.join();
  if (argc > 1 && std::strcmp(argv[1], "stop") == 0) {
    lotus::stop();
    std::atexit([] { LOTUS_SCOPE("AfterStop"); });
    { LOTUS_SCOPE("AfterStop"); }
  }
  if (argc > 1 && std::strcmp(argv[1], "quick") == 0) quick_exit(0);
  record_late();
}
