//! The forms in which the kernel puts figures into text, whatever the file.

/// What follows a line's first word, `key`.
pub(super) fn value<'text>(text: &'text str, key: &str) -> Option<&'text str> {
    let rest = text.lines().find_map(|line| line.strip_prefix(key))?;
    rest.starts_with(char::is_whitespace).then(|| rest.trim())
}

/// The number after `key`.
pub(super) fn number(text: &str, key: &str) -> Option<u64> {
    value(text, key)?.parse().ok()
}

/// The memory after `key`, in bytes.
pub(super) fn bytes(text: &str, key: &str) -> Option<u64> {
    value(text, key)?.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The first two numbers of a line of numbers.
pub(super) fn two_numbers(text: &str) -> Option<[u64; 2]> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse);
    Some([numbers.next()?.ok()?, numbers.next()?.ok()?])
}

/// How many there are from `first` to `last`.
pub(super) fn range_len(first: u64, last: u64) -> Option<u64> {
    last.checked_sub(first)?.checked_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_words_are_read() {
        let text = "VmHWM:\t  900 kB\nVmRSS:\t    640 kB\nVmPeak: much\nnr_throttled 4\n";
        assert_eq!(bytes(text, "VmRSS:"), Some(655_360));
        assert_eq!((bytes(text, "VmPeak:"), bytes(text, "nr_throttled")), (None, None));
        assert_eq!(number(text, "nr_throttled"), Some(4));
        assert_eq!((number(text, "nr_thr"), number(text, "VmPeak:")), (None, None));
        assert_eq!(two_numbers("32768\t60999\n"), Some([32_768, 60_999]));
        assert_eq!((two_numbers("32768"), two_numbers("a 5")), (None, None));
        assert_eq!((range_len(3, 1), range_len(0, u64::MAX)), (None, None));
    }
}
