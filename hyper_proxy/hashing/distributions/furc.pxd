from hyper_proxy.hashing.hash cimport Hash
from hyper_proxy.hashing.placement cimport Placement
