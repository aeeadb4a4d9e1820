// A shared object that hard_probe loads. OBJECT_FUNCTION is the name of its only function, which
// does the work.
#include "arithmetic.hpp"

__attribute__((noinline)) static double OBJECT_FUNCTION() {
  return arithmetic<OBJECT_ID>(20'000'000);
}

extern "C" __attribute__((visibility("default"))) double run_object() {
  return OBJECT_FUNCTION();
}
