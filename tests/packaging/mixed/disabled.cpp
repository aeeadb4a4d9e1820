#define LOTUS_DISABLE
#define PIPELINE disabled_pipeline
#define PIPELINE_ON_ONE_LINE disabled_on_one_line
#define PIPELINE_NAME "disabled"
#include "pipeline.hpp"
