// Summarizes in one or two sentences how a program without markers (Lotus macros) spends its time.
#ifndef LOTUS_TOOL_THREADS_VIEW_HEADLINE_HPP
#define LOTUS_TOOL_THREADS_VIEW_HEADLINE_HPP

#include <string>
#include <vector>

#include "threads/analysis/thread_activity.hpp"
#include "threads/analysis/wait_chain.hpp"

namespace lotus::tool {

/// Returns a sentence without a period for each group in a chain of waits, such as "main thread
/// waits 82 % of the time, in `Loader::next` (loader.h:61), for 4 threads in `worker_loop`" and
/// "These threads spend 71 % of their CPU time in `jpeg_idct_islow`".
std::vector<std::string> chain_sentences(const std::vector<thread_activity>& groups,
                                         const std::vector<chain_hop>& chain);

/// Returns the sentences of the dominant chain and, if it explains nothing, where the busiest other
/// threads work; "" if there are too few samples.
/// @param chain  begins with subject_of(groups).
std::string headline_of(const std::vector<thread_activity>& groups,
                        const std::vector<chain_hop>& chain);

/// Returns a text about the reason of a wait, such as "for a lock" or "for the file
/// /data/train.tar".
std::string shown_wait(const blocked_part& part);

/// Returns the group for which the threads of `group` wait, such as "4 threads in `decode`", and if
/// it is a guess also its reason; "" if it is unknown.
std::string shown_target(const blocked_part& part, const std::vector<thread_activity>& groups,
                         const thread_activity& group);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_THREADS_VIEW_HEADLINE_HPP
