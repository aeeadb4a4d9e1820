// An object that hard_probe loads; OBJECT_FUNCTION is what it spends its time in.
#include "arithmetic.hpp"

__attribute__((noinline)) static double OBJECT_FUNCTION() {
  return arithmetic<OBJECT_ID>(20'000'000);
}

extern "C" __attribute__((visibility("default"))) double run_object() {
  return OBJECT_FUNCTION();
}
