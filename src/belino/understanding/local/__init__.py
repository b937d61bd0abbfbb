"""Local reading: what the providers that run on this machine share, in the gateway and in the worker."""
