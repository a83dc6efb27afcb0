from hyper_proxy.common.xxh64 cimport xxh64
from hyper_proxy.hashing.hash cimport Hash
