// Uses every macro and nothing else of the library. nothing_left.cmake checks that LOTUS_DISABLE
// leaves nothing of the library in the object file.
#include <string>

#include "lotus/lotus.hpp"

int only_macros(int batch, const std::string& name, int (*operation)(int)) {
  int result = 0;
  LOTUS_SCOPE("Work");
  LOTUS_SCOPE_DYNAMIC(name);
  LOTUS_SCOPE_AGGREGATED("Token");
  LOTUS_SCOPE_AGGREGATED(name);
  LOTUS_BATCH_PREPROCESSED(batch);
  LOTUS_BATCH_WAIT(batch);
  LOTUS_BATCH_QUEUED(batch);
  LOTUS_BATCH_ARRIVED(batch);
  LOTUS_BATCH_CONSUMED(batch);
  LOTUS_RESUME();
  LOTUS_PAUSE();
  LOTUS_DETACH();
  LOTUS_MAP_REGION("Crop", batch, result) {
    result = operation(batch);
  }
  return result;
}
