"""DICE (Tu et al., arXiv:2406.04197) on the set-up of EAL (Dekoninck et al., arXiv:2402.02823)."""
