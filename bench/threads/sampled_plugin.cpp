// A plugin that sampled_shares loads while it runs.
#include "sampled_work.hpp"

extern "C" __attribute__((noinline)) void decode_in_plugin(int ms) {
  LOTUS_USE_CPU(ms);
}
