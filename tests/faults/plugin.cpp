// A plugin that records, built with hidden visibility; PLUGIN_NAME tells them apart.

#include "lotus/lotus.hpp"

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED void record_some(int times) {
  for (int i = 0; i < times; ++i) LOTUS_SCOPE(PLUGIN_NAME);
}

EXPORTED bool start_recording(const char* log_file) {
  return lotus::start(log_file);
}
