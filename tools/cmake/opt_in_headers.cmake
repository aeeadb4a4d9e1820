# Headers that only the user includes, never lotus.hpp, because they need what lotus.hpp does not.
set(lotus_opt_in_headers "^lotus/torch[./]")
