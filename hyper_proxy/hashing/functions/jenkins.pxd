from hyper_proxy.hashing.hash cimport Hash, SignedHash
