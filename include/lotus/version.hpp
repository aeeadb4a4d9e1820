// Defines the version of the library. CMake parses the three lines below, so they must contain no
// other digits.
#ifndef LOTUS_VERSION_HPP
#define LOTUS_VERSION_HPP

#define LOTUS_VERSION_MAJOR 0  ///< increased when users must change their code
#define LOTUS_VERSION_MINOR 2  ///< likewise, as long as the major version is zero
#define LOTUS_VERSION_PATCH 0  ///< increased when a release only fixes bugs

/// Increased when the layout of something changes that files or shared objects of one program pass
/// to each other. Those with the same number share a recording, whatever their versions are. The
/// number is in the name of the inline namespace, so objects with different numbers link into one
/// program; each number then has a recording of its own. tests/packaging/versions/layout.cpp has
/// the sizes that belong to the number.
#define LOTUS_ABI 17

#endif  // LOTUS_VERSION_HPP
