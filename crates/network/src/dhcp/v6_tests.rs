use proptest::prelude::*;

use super::*;

fn responder() -> Responder {
    let lease = Lease6 { address: "fd10:0:2::2".parse().unwrap() };
    Responder::new(&lease, Mac::GATEWAY, &["fd00::a".parse().unwrap()])
}

fn request(kind: u8, options: &[(u16, &[u8])]) -> Vec<u8> {
    let mut packet = vec![kind, 7, 8, 9];
    options.iter().for_each(|(code, value)| put(&mut packet, *code, value));
    packet
}

fn association(identity: u8, addresses: &[&str]) -> Vec<u8> {
    let mut value = vec![0; 12];
    value[3] = identity;
    for address in addresses {
        let address: Ipv6Addr = address.parse().unwrap();
        put(&mut value, ADDRESS, &[&address.octets()[..], &[0; 8]].concat());
    }
    value
}

const IDENTITY: [u8; 10] = [0, 3, 0, 1, 2, 0, 0, 0, 0, 0];
const STRANGER: [u8; 10] = [0, 3, 0, 1, 2, 0, 0, 0, 0, 1];

fn all(reply: &[u8], wanted: u16) -> Vec<Vec<u8>> {
    read(&reply[4..]).filter(|(code, _)| *code == wanted).map(|(_, value)| value.to_vec()).collect()
}

#[test]
fn which_requests_get_which_answer() {
    let client: (u16, &[u8]) = (CLIENT, b"me");
    type Options<'a> = &'a [(u16, &'a [u8])];
    let cases: [(u8, Options<'_>, Option<u8>); 13] = [
        (SOLICIT, &[client], Some(ADVERTISE)),
        (SOLICIT, &[client, (RAPID_COMMIT, &[])], Some(REPLY)),
        (SOLICIT, &[], None),
        (REQUEST, &[client, (SERVER, &IDENTITY)], Some(REPLY)),
        (REQUEST, &[client, (SERVER, &STRANGER)], None),
        (RENEW, &[client, (SERVER, &IDENTITY)], Some(REPLY)),
        (REBIND, &[client], Some(REPLY)),
        (RELEASE, &[client], Some(REPLY)),
        (DECLINE, &[client], Some(REPLY)),
        (INFORMATION, &[], Some(REPLY)),
        (CONFIRM, &[client], None),
        (REPLY, &[client], None),
        (12, &[client], None),
    ];
    for (kind, options, expected) in cases {
        let reply = responder().reply(&request(kind, options));
        assert_eq!(reply.as_ref().map(|reply| reply[0]), expected, "{kind} {options:?}");
        if let Some(reply) = reply {
            assert_eq!(reply[1..4], [7, 8, 9]);
            assert_eq!(all(&reply, SERVER), [IDENTITY]);
            assert_eq!(all(&reply, CLIENT).len(), options.iter().filter(|(code, _)| *code == CLIENT).count());
            assert_eq!(all(&reply, NAME_SERVERS).len(), 1);
        }
    }
}

#[test]
fn the_first_association_gets_the_address() {
    let (first, second) = (association(1, &[]), association(2, &[]));
    let options: [(u16, &[u8]); 3] = [(CLIENT, b"me"), (ASSOCIATION, &first), (ASSOCIATION, &second)];
    let reply = responder().reply(&request(SOLICIT, &options)).unwrap();
    let granted = all(&reply, ASSOCIATION);
    assert_eq!((granted.len(), granted[0][3], granted[1][3]), (2, 1, 2));
    let (code, address) = read(&granted[0][12..]).next().unwrap();
    assert_eq!(code, ADDRESS);
    assert_eq!(address[..16], "fd10:0:2::2".parse::<Ipv6Addr>().unwrap().octets());
    assert_eq!(address[16..20], LEASE_SECONDS.to_be_bytes());
    assert_eq!(read(&granted[1][12..]).next().unwrap(), (STATUS, &NO_ADDRESSES.to_be_bytes()[..]));
}

#[test]
fn addresses_are_confirmed() {
    for (addresses, expected) in [
        (&["fd10:0:2::2"][..], Some(SUCCESS)),
        (&["fd10:0:2::3"], Some(NOT_ON_LINK)),
        (&["fd10:0:2::2", "fd10:0:2::3"], Some(NOT_ON_LINK)),
        (&[], None),
    ] {
        let options: [(u16, &[u8]); 2] = [(CLIENT, b"me"), (ASSOCIATION, &association(1, addresses))];
        let reply = responder().reply(&request(CONFIRM, &options));
        let status = reply.map(|reply| all(&reply, STATUS)[0].clone());
        assert_eq!(status, expected.map(|status| status.to_be_bytes().to_vec()), "{addresses:?}");
    }
}

proptest! {
    #[test]
    fn any_packet_is_survived(kind in any::<u8>(), noise in prop::collection::vec(any::<u8>(), 0..300), cut in 0_usize..340) {
        let _ = responder().reply(&noise);
        let association = association(1, &["fd10:0:2::2"]);
        let mut packet = request(kind, &[(CLIENT, &[1; 4]), (ASSOCIATION, &association)]);
        packet.extend(noise);
        packet.truncate(cut);
        let _ = responder().reply(&packet);
    }
}
