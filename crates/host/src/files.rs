//! How many files this process may have open.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lets this process have as many files open as the system allows it at most. The usual limit is low for the sake of
/// programs that can wait for no file with a higher number.
pub fn allow_many() -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return Ok(());
    }
    Ok(setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_allowed_is_used() {
        let limit = getrlimit(Resource::Nofile);
        let most = limit.maximum.unwrap();
        // As little as possible less, since other tests have files open too.
        setrlimit(Resource::Nofile, Rlimit { current: Some(most - 1), ..limit }).unwrap();
        for _ in 0..2 {
            allow_many().unwrap();
            let now = getrlimit(Resource::Nofile);
            assert_eq!((now.current, now.maximum), (Some(most), Some(most)));
        }
    }
}
