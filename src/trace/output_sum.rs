//! Completion tokens that rows ask for, summed up, where some may ask for no length at all.
//!
//! A sum over rows of which one is answered to its end is no sum: it is unknown, and never the sum of the
//! others or 0.

/// What a set of rows asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputSum {
    /// Tokens of the rows that ask for a length.
    pub limited_tok: u64,
    /// Rows that ask for none: their answers end by themselves.
    pub natural_rows: u64,
}

impl OutputSum {
    /// A sum over rows that all ask for a length.
    #[must_use]
    pub const fn of(limited_tok: u64) -> Self {
        Self { limited_tok, natural_rows: 0 }
    }

    /// Counts a row.
    pub fn add(&mut self, output_tok: Option<u32>) {
        match output_tok {
            Some(tok) => self.limited_tok += u64::from(tok),
            None => self.natural_rows += 1,
        }
    }

    /// Counts the rows of another set too.
    pub fn merge(&mut self, other: Self) {
        self.limited_tok += other.limited_tok;
        self.natural_rows += other.natural_rows;
    }

    /// Tokens of all rows; `None` where some row asks for no length.
    #[must_use]
    pub fn total(self) -> Option<u64> {
        (self.natural_rows == 0).then_some(self.limited_tok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_row_of_no_length_makes_the_sum_unknown() {
        let mut sum = OutputSum::default();
        assert_eq!(sum.total(), Some(0));
        sum.add(Some(7));
        assert_eq!(sum, OutputSum::of(7));
        assert_eq!(sum.total(), Some(7));
        let mut other = OutputSum::of(5);
        other.add(None);
        sum.merge(other);
        assert_eq!((sum.limited_tok, sum.natural_rows, sum.total()), (12, 1, None));
    }
}
