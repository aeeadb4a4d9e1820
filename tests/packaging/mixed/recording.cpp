#define PIPELINE recording_pipeline
#define PIPELINE_ON_ONE_LINE recording_on_one_line
#define PIPELINE_NAME "recording"
#include "pipeline.hpp"
