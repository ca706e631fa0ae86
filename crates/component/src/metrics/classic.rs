//! The text of our counters in the older of Prometheus' two formats, which every reader knows.
//!
//! It is also the one in which a counter need not end in `_total`, and KubeVirt has some that do not.

/// Turns the newer format into the older one.
pub(super) fn classic(open: &str) -> String {
    let mut text = String::with_capacity(open.len());
    let mut help = None;
    for line in open.lines() {
        let comment = line.strip_prefix("# ").and_then(|rest| rest.split_once(' '));
        match comment {
            None if line.starts_with('#') => {}
            None => {
                text.push_str(line);
                text.push('\n');
            }
            // The name of a counter is known when its type is.
            Some(("HELP", rest)) => help = rest.split_once(' '),
            Some(("TYPE", rest)) => {
                let (name, kind) = rest.split_once(' ').unwrap_or((rest, "untyped"));
                let end = if kind == "counter" { "_total" } else { "" };
                if let Some((_, help)) = help.take().filter(|(named, _)| *named == name) {
                    text.push_str(&format!("# HELP {name}{end} {help}\n"));
                }
                text.push_str(&format!("# TYPE {name}{end} {kind}\n"));
            }
            Some(_) => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_have_their_whole_name() {
        let open = "# HELP a_adds Things.\n# TYPE a_adds counter\n# UNIT a_adds x\na_adds_total{name=\"# b\"} 1\n\
                    # HELP depth Deep.\n# TYPE depth gauge\ndepth 2.0\n# EOF\n";
        let text = "# HELP a_adds_total Things.\n# TYPE a_adds_total counter\na_adds_total{name=\"# b\"} 1\n\
                    # HELP depth Deep.\n# TYPE depth gauge\ndepth 2.0\n";
        assert_eq!(classic(open), text);
    }
}
