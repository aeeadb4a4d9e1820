#define LOTUS_DISABLE
#define PIPELINE disabled_pipeline
#define PIPELINE_ON_ONE_LINE disabled_on_one_line
#define PIPELINE_NAME "disabled"
#include "pipeline.hpp"

/// Also uses each class in a way that would record.
bool disabled_start(const std::string& log_file) {
  if (!lotus::start(log_file)) return false;
  const lotus::scope scope{"DisabledScope"};
  const lotus::stage stage{"DisabledStage", 1};
  const lotus::batch_preprocessed batch{1};
  lotus::batch_wait wait;
  wait.consumed(1);
  lotus::stop();
  return true;
}
