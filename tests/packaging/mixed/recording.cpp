#define PIPELINE recording_pipeline
#define PIPELINE_NAME "recording"
#include "pipeline.hpp"
