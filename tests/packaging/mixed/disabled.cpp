#define LOTUS_DISABLE
#define PIPELINE disabled_pipeline
#define PIPELINE_NAME "disabled"
#include "pipeline.hpp"
