from hyper_proxy.hashing.placement cimport Placement
