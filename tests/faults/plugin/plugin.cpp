// A plugin that records. It is built several times, each time with another PLUGIN_NAME, and with
// hidden visibility.

#include <stdlib.h>
#include <unistd.h>

#include "lotus/lotus.hpp"

#define EXPORTED extern "C" __attribute__((visibility("default")))

// If the host sets PLUGIN_LOADS_FOR_MS, this variable's initialization records a scope while
// dlopen() loads the plugin. During that time, dlopen() holds the lock of the dynamic loader.
const bool recorded_while_loaded = [] {
  const char* ms = getenv("PLUGIN_LOADS_FOR_MS");
  if (ms == nullptr) return false;
  usleep(static_cast<useconds_t>(atoi(ms)) * 1000);
  LOTUS_SCOPE("Loading");
  return true;
}();

EXPORTED void record_some(int times) {
  for (int i = 0; i < times; ++i) LOTUS_SCOPE(PLUGIN_NAME);
}

EXPORTED bool start_recording(const char* log_file) {
  return lotus::start(log_file);
}

EXPORTED void resume_collector() {
  LOTUS_RESUME();
}
