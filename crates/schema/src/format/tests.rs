//! What each format accepts. The odd ones are what the API server does.

use super::*;

fn accepts(name: &str, text: &str) -> bool {
    match Format::named(name, Some(Type::String)) {
        Some(Format::Text(format)) => (format.accepts)(text),
        other => panic!("{name} is {other:?}"),
    }
}

#[test]
fn accepts_and_refuses() {
    let long = "a".repeat(64);
    let table: &[(&str, &[&str], &[&str])] = &[
        (
            "date-time",
            &["2024-05-01T12:00:00Z", "2024-02-29t23:59:59.5+01:00", "2024-05-01T12:00:00,5z"],
            &[
                "",
                "2024-05-01",
                "2024-02-30T00:00:00Z",
                "2024-05-01T24:00:00Z",
                "2024-05-01T12:00:60Z",
                "2024-05-01T12:00:00",
                "2024-05-01T12:00:00é",
                "2024-13-01T00:00:00Z",
            ],
        ),
        ("date", &["2024-05-01", "2000-02-29"], &["1900-02-29", "24-05-01", "2024-5-1", "2024-00-01"]),
        (
            "duration",
            &["1h30m", "0", "-1.5h", "1.h", ".5s", "1µs", "5 minutes", "2 days ago", "3 Weeks"],
            &["", "h", "5", ".s", "1 fortnight", "99999999999999999999h"],
        ),
        ("byte", &["aGk=", "aGkh", "aA=="], &["", "aGk", "a===", "====", "a b=", "-_-_"]),
        ("ipv4", &["1.2.3.4", "01.02.03.004", "::ffff:1.2.3.4"], &["1.2.3", "1.2.3.256", "::1", "+1.2.3.4"]),
        ("ipv6", &["::", "::1", "1:2:3:4:5:6:7::", "::ffff:1.2.3.4"], &["1.2.3.4", "fe80::1%eth0", "::g"]),
        ("cidr", &["10.0.0.0/8", "::/0", "010.0.0.0/08"], &["10.0.0.0", "10.0.0.1/33", "::1/129", "1::/+5"]),
        (
            "mac",
            &["01:23:45:67:89:ab", "01-23-45-67-89-AB", "0123.4567.89ab", "0123.4567.89ab.cdef"],
            &["", "01:23:45:67:89", "01:23:45-67:89:ab", "g1:23:45:67:89:ab", "01:23:45:67:89:ab:"],
        ),
        (
            "uuid",
            &["123e4567-e89b-12d3-a456-426614174000", "123E4567E89B12D3A456426614174000"],
            &["123e4567-e89b-12d3-a456-42661417400", "123e4567--e89b-12d3-a456-426614174000"],
        ),
        (
            "uuid4",
            &["123e4567-e89b-42d3-a456-426614174000"],
            &["123e4567-e89b-12d3-a456-426614174000", "123e4567-e89b-42d3-1456-426614174000"],
        ),
        (
            "uri",
            &["http://a.b/c", "/abs", "mailto:a@b", "http://[::1]:80/", "http://é/", "x:"],
            &["", "foo", "./rel", "http://a b/", "http://a/%zz", "http://a:b/", "http://[::1", "://x"],
        ),
        (
            "email",
            &["a@b.c", "A B <a@b.c>", "\"a b\"@c", "a@[1.2.3.4]"],
            &["a", "@b", "a@", "a b@c", "a..b@c"],
        ),
        ("hostname", &["a", "m-host", "a-b.example.com", "é.com"], &["", "my-host", "-a.com", "a.b", &long]),
        ("k8s-short-name", &["a", "a-b", "0"], &["", "A", "a.b", "-a", "a-", "-", &long]),
        ("k8s-long-name", &["a", "a.b", &long], &["", "a..b", "a.B", "a.-b"]),
        ("isbn", &["0321751043", "978-0321751041", "3 401 01319 X"], &["0321751044", "978032175104X"]),
        ("creditcard", &["4220 8554 2622 2389", "374953669708156"], &["4220855426213389", "x"]),
        ("ssn", &["123-45-6789", "123 45 6789"], &["123456789", "12-345-6789"]),
        ("hexcolor", &["#fff", "123456"], &["#ffff", "#12345g"]),
        ("rgbcolor", &["rgb(1,2,3)", "rgb(0,  31, 255)"], &["rgb(256,0,0)", "rgb(01,0,0)", "rgb(1,2)"]),
        ("bsonobjectid", &["507f1f77bcf86cd799439011"], &["507f1f77bcf86cd79943901g", "507f"]),
    ];
    for (name, good, bad) in table {
        for text in *good {
            assert!(accepts(name, text), "{name} should accept {text:?}");
        }
        for text in *bad {
            assert!(!accepts(name, text), "{name} should refuse {text:?}");
        }
    }
}

#[test]
fn unknown_formats_are_ignored() {
    for (name, kind) in [
        ("nope", Some(Type::String)),
        ("password", Some(Type::String)),
        ("int32", Some(Type::String)),
        ("int32", Some(Type::Number)),
        ("ipv4", Some(Type::Integer)),
        ("ipv4", Some(Type::Object)),
    ] {
        assert!(Format::named(name, kind).is_none(), "{name} for {kind:?}");
    }
}
