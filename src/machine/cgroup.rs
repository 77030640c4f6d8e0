//! The control groups of this process: how much processor time they allow, and how long they held it back.
//!
//! Both versions are read, from the process's own group up to the root, since every level may have a limit.
//! Where the system has none, nothing is known. Deliberately absent: changing anything.

use std::path::{Path, PathBuf};

use super::proc_text::number;
use crate::units::Nanos;

const MOUNT: &str = "/sys/fs/cgroup";

/// How often, and for how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttled {
    /// Periods in which the group's time ran out.
    pub periods: u64,
    /// Time until the next one, summed over the cores that had work.
    pub time: Nanos,
}

/// A process's groups, its own first.
#[derive(Debug)]
pub struct Cgroup {
    version: Version,
    levels: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Cgroup {
    /// Those of this process.
    #[must_use]
    pub fn here() -> Option<Self> {
        let membership = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        Self::find(&membership, Path::new(MOUNT))
    }

    fn find(membership: &str, mount: &Path) -> Option<Self> {
        let (version, controllers, path) = place(membership)?;
        let roots = match version {
            Version::One => vec![mount.join(controllers), mount.join("cpu")],
            Version::Two => vec![mount.to_owned(), mount.join("unified")],
        };
        let root = roots.into_iter().find(|root| root.join("cpu.stat").exists())?;
        // Inside a container the path may be the host's, whose folder is not seen there.
        let own = root.join(path.trim_start_matches('/'));
        let own = if own.is_dir() { own } else { root.clone() };
        let levels = own.ancestors().take_while(|level| level.starts_with(&root));
        Some(Self { version, levels: levels.map(Path::to_owned).collect() })
    }

    /// Cores' worth of time that the tightest of them allows; `None` where none has a limit.
    #[must_use]
    pub fn quota_cores(&self) -> Option<f64> {
        let quotas = self.levels.iter().filter_map(|level| {
            let read = |name: &str| std::fs::read_to_string(level.join(name)).ok();
            match self.version {
                Version::One => ratio(&read("cpu.cfs_quota_us")?, &read("cpu.cfs_period_us")?),
                Version::Two => {
                    let text = read("cpu.max")?;
                    let (quota, period) = text.trim().split_once(' ')?;
                    ratio(quota, period)
                }
            }
        });
        quotas.min_by(f64::total_cmp)
    }

    /// How they held this process and its neighbours back until now; `None` where none says.
    #[must_use]
    pub fn throttled(&self) -> Option<Throttled> {
        let told = self.levels.iter().filter_map(|level| {
            throttled(self.version, &std::fs::read_to_string(level.join("cpu.stat")).ok()?)
        });
        told.reduce(|a, b| Throttled { periods: a.periods + b.periods, time: a.time + b.time })
    }
}

/// Where the controller of processor time has this process: in a hierarchy of its own (version 1), or in
/// the one of all (version 2).
fn place(membership: &str) -> Option<(Version, &str, &str)> {
    let lines = || {
        membership.lines().filter_map(|line| {
            let (_, rest) = line.split_once(':')?;
            rest.split_once(':')
        })
    };
    let own = lines().find(|(controllers, _)| controllers.split(',').any(|name| name == "cpu"));
    let of_all = || lines().find(|(controllers, _)| controllers.is_empty());
    own.map(|(controllers, path)| (Version::One, controllers, path))
        .or_else(|| of_all().map(|(_, path)| (Version::Two, "", path)))
}

/// `quota ÷ period`; `None` for `max`, `-1` and anything that is no number.
fn ratio(quota: &str, period: &str) -> Option<f64> {
    let (quota, period): (u64, u64) = (quota.trim().parse().ok()?, period.trim().parse().ok()?);
    (period > 0).then(|| quota as f64 / period as f64)
}

fn throttled(version: Version, stat: &str) -> Option<Throttled> {
    let figure = |key| number(stat, key);
    let time = match version {
        Version::One => Nanos(figure("throttled_time")?),
        Version::Two => Nanos(figure("throttled_usec")?.saturating_mul(1_000)),
    };
    Some(Throttled { periods: figure("nr_throttled")?, time })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with these files.
    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let place = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = place.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("space");
        }
        place
    }

    #[test]
    fn version_two_counts_every_level_and_obeys_the_tightest() {
        let stat = |n: u64, us: u64| {
            format!("usage_usec 5\nnr_periods 9\nnr_throttled {n}\nthrottled_usec {us}\n")
        };
        let place = tree(&[
            ("cpu.stat", "usage_usec 5\n"),
            ("pod/cpu.stat", &stat(1, 10)),
            ("pod/cpu.max", "150000 100000\n"),
            ("pod/box/cpu.stat", &stat(2, 500)),
            ("pod/box/cpu.max", "max 100000\n"),
        ]);
        let group = Cgroup::find("0::/pod/box\n", place.path()).expect("a group");
        assert_eq!(group.quota_cores(), Some(1.5));
        let sum = Throttled { periods: 3, time: Nanos(510_000) };
        assert_eq!(group.throttled(), Some(sum));
        // The root has no limit, and so no account of it.
        let group = Cgroup::find("0::/\n", place.path()).expect("a group");
        assert_eq!((group.quota_cores(), group.throttled()), (None, None));
    }

    #[test]
    fn version_one_is_found_under_either_name_and_without_its_path() {
        let stat = "nr_periods 9\nnr_throttled 4\nthrottled_time 7000\n";
        let told = Some(Throttled { periods: 4, time: Nanos(7_000) });
        let check = |root: &str, membership: &str, quota: &str, cores| {
            let place = tree(&[
                (&format!("{root}/cpu.stat"), stat),
                (&format!("{root}/cpu.cfs_quota_us"), quota),
                (&format!("{root}/cpu.cfs_period_us"), "100000\n"),
            ]);
            let group = Cgroup::find(membership, place.path()).expect("a group");
            assert_eq!((group.quota_cores(), group.throttled()), (cores, told), "{root}");
        };
        check("cpu", "3:memory:/x\n1:cpu:/\n0::/\n", "50000\n", Some(0.5));
        check("cpu,cpuacct", "4:cpu,cpuacct:/docker/1234\n", "-1\n", None);
        check("cpu", "4:cpu,cpuacct:/docker/1234\n", "200000\n", Some(2.0));
    }

    #[test]
    fn nothing_is_made_up() {
        let place = tree(&[("cpu.stat", "nr_throttled many\nthrottled_usec 5\n")]);
        let group = Cgroup::find("0::/\n", place.path()).expect("a group");
        assert_eq!(group.throttled(), None);
        assert!(Cgroup::find("1:cpu:/\n", place.path()).is_none());
        assert!(Cgroup::find("", place.path()).is_none());
        assert_eq!(ratio("5", "0"), None);
    }
}
