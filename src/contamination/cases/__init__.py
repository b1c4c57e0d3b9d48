"""The case studies of Shi et al.: books, inserted benchmark rows, unlearning."""
