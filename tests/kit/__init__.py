"""What tests are made of: real servers, fakes that misbehave, fleets, clients, waiting without sleeping."""
