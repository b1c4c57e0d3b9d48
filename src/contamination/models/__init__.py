"""Language models: a local Hugging Face one, and an endpoint that answers over the network."""
