"""What `hyper-proxy reshard` is made of: a plan of homes, connections to servers, walks over their keys."""
