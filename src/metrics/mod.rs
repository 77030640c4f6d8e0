//! From rows to figures.
