//! Figures to files and words.
