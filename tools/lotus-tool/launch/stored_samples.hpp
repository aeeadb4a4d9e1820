// Stores samples of a program's threads in a folder, and explains what could not be sampled.
#ifndef LOTUS_TOOL_LAUNCH_STORED_SAMPLES_HPP
#define LOTUS_TOOL_LAUNCH_STORED_SAMPLES_HPP

#include <sys/types.h>

#include <string>

#include "threads/data/thread_samples.hpp"
#include "threads/record/thread_recorder.hpp"

namespace lotus::tool {

/// Returns why some samples could not be taken; "" if all could.
std::string reason_not_sampled(const thread_recorder& recorder);

/// Stores the samples of a program in a folder, which it creates if necessary. Returns false if
/// there are fewer than ten samples, which would show nothing. Throws input_error.
/// @param pid  the program's process, which becomes a part of the file's name.
bool store_samples(const thread_samples& samples, pid_t pid, const std::string& dir);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_LAUNCH_STORED_SAMPLES_HPP
