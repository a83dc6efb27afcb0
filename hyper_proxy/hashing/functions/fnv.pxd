from hyper_proxy.hashing.hash cimport SignedHash
