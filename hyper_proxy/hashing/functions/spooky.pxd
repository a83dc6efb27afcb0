from hyper_proxy.common.xxh64 cimport rotate, word
from hyper_proxy.hashing.hash cimport Hash
