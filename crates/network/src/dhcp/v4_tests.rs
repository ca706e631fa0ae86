use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::{dhcp::ExtraOptions, resolv::ResolvConf};

const CLIENT: Mac = Mac([2, 0, 0, 0, 0, 9]);

fn responder(client: Option<Mac>) -> Responder {
    let lease = Lease4 {
        address: "10.0.2.2/24".parse().unwrap(),
        server: Ipv4Addr::new(10, 0, 2, 1),
        router: Some(Ipv4Addr::new(10, 0, 2, 1)),
        routes: Vec::new(),
        client,
    };
    let settings = Settings {
        hostname: "vm1".to_owned(),
        resolv: ResolvConf::parse("nameserver 10.96.0.10\nsearch ns.svc.cluster.local cluster.local"),
        subdomain: Some("web".to_owned()),
        extra: ExtraOptions {
            boot_file_name: Some("pxe.0".to_owned()),
            tftp_server_name: Some("10.1.1.1".to_owned()),
            ntp_servers: vec![Ipv4Addr::new(10, 1, 1, 2)],
            private: BTreeMap::from([(240, "hello".to_owned()), (5, "no".to_owned())]),
        },
    };
    Responder::new(&lease, 1400, &settings)
}

fn request(kind: u8, more: &[(u8, &[u8])]) -> Vec<u8> {
    let mut packet = vec![0; FIXED];
    packet[..8].copy_from_slice(&[1, 1, 6, 0, 0xde, 0xad, 0xbe, 0xef]);
    packet[28..34].copy_from_slice(&CLIENT.0);
    packet[236..].copy_from_slice(&COOKIE);
    put(&mut packet, code::MESSAGE_TYPE, &[kind]);
    more.iter().for_each(|(code, value)| put(&mut packet, *code, value));
    packet.push(code::END);
    packet
}

fn options(reply: &Reply) -> BTreeMap<u8, Vec<u8>> {
    read(&reply.packet[FIXED..]).map(|(code, value)| (code, value.to_vec())).collect()
}

#[test]
fn an_offer_says_everything() {
    let reply = responder(None).reply(&request(DISCOVER, &[(code::CLIENT, &[1, 2, 3])])).unwrap();
    assert_eq!(reply.to, SocketAddrV4::new(Ipv4Addr::BROADCAST, 68));
    assert_eq!(reply.packet[..8], [2, 1, 6, 0, 0xde, 0xad, 0xbe, 0xef]);
    assert_eq!(reply.packet[16..24], [10, 0, 2, 2, 10, 1, 1, 1]);
    assert_eq!(reply.packet[28..34], CLIENT.0);
    assert_eq!(&reply.packet[108..114], b"pxe.0\0");
    let expected: [(u8, &[u8]); 16] = [
        (1, &[255, 255, 255, 0]),
        (3, &[10, 0, 2, 1]),
        (6, &[10, 96, 0, 10]),
        (12, b"vm1"),
        (15, b"web.ns.svc.cluster.local"),
        (26, &[5, 120]),
        (42, &[10, 1, 1, 2]),
        (51, &86_313_600_u32.to_be_bytes()),
        (53, &[OFFER]),
        (54, &[10, 0, 2, 1]),
        (61, &[1, 2, 3]),
        (66, b"10.1.1.1"),
        (67, b"pxe.0"),
        (119, b"\x03web\x02ns\x03svc\x07cluster\x05local\0\x02ns\x03svc\x07cluster\x05local\0\x07cluster\x05local\0"),
        (240, b"hello"),
        (255, b""),
    ];
    let mut options = options(&reply);
    options.insert(255, Vec::new());
    assert_eq!(options, expected.map(|(code, value)| (code, value.to_vec())).into());
}

#[test]
fn which_requests_get_which_answer() {
    let (ours, other) = ([10, 0, 2, 2], [10, 0, 2, 77]);
    let (server, elsewhere) = ([10, 0, 2, 1], [10, 0, 2, 99]);
    type Options<'a> = &'a [(u8, &'a [u8])];
    let cases: [(u8, Options<'_>, Option<u8>); 10] = [
        (DISCOVER, &[], Some(OFFER)),
        (DISCOVER, &[(50, &other)], Some(OFFER)),
        (ASK, &[], Some(ACKNOWLEDGE)),
        (ASK, &[(50, &ours), (54, &server)], Some(ACKNOWLEDGE)),
        (ASK, &[(50, &other)], Some(REFUSE)),
        (ASK, &[(50, &ours), (54, &elsewhere)], None),
        (INFORM, &[], Some(ACKNOWLEDGE)),
        (4, &[], None),
        (7, &[], None),
        (200, &[], None),
    ];
    for (kind, more, expected) in cases {
        let reply = responder(None).reply(&request(kind, more));
        assert_eq!(reply.as_ref().map(|reply| options(reply)[&53][0]), expected, "{kind} {more:?}");
        if let Some(reply) = reply {
            let leases = kind != INFORM && expected != Some(REFUSE);
            assert_eq!(options(&reply).contains_key(&51), leases);
            assert_eq!(reply.packet[16..20] == ours, leases);
            assert!(reply.packet.len() >= SMALLEST);
        }
    }
}

#[test]
fn a_guest_with_an_address_is_answered_there() {
    let mut renewal = request(ASK, &[]);
    renewal[12..16].copy_from_slice(&[10, 0, 2, 2]);
    let to = |packet: &[u8]| responder(None).reply(packet).map(|reply| *reply.to.ip());
    assert_eq!(to(&renewal), Some(Ipv4Addr::new(10, 0, 2, 2)));
    renewal[10] = 0x80;
    assert_eq!(to(&renewal), Some(Ipv4Addr::BROADCAST));
    renewal[12..16].copy_from_slice(&[10, 0, 2, 3]);
    assert_eq!(to(&renewal), Some(Ipv4Addr::BROADCAST), "refused aloud");
}

#[test]
fn strangers_get_no_answer() {
    assert!(responder(Some(CLIENT)).reply(&request(DISCOVER, &[])).is_some());
    assert!(responder(Some(Mac([2, 0, 0, 0, 0, 8]))).reply(&request(DISCOVER, &[])).is_none());
    let mut relayed = request(DISCOVER, &[]);
    relayed[24] = 10;
    assert!(responder(None).reply(&relayed).is_none());
}

proptest! {
    #[test]
    fn any_packet_is_survived(
        kind in any::<u8>(),
        noise in prop::collection::vec(any::<u8>(), 0..400),
        cut in 0_usize..700,
        flips in prop::collection::vec((0_usize..500, any::<u8>()), 0..8),
    ) {
        let mut packet = request(kind, &[]);
        packet.extend(noise);
        for (at, value) in flips {
            if let Some(byte) = packet.get_mut(at) {
                *byte = value;
            }
        }
        packet.truncate(cut);
        let _ = responder(None).reply(&packet);
    }
}
