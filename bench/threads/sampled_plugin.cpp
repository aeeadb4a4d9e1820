// A plugin that sampled_shares loads at run time, to test whether its functions are found.
#include "sampled_work.hpp"

extern "C" __attribute__((noinline)) void decode_in_plugin(int ms) {
  LOTUS_USE_CPU(ms);
}
