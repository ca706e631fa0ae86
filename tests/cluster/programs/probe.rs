//! What the pods of the cluster's tests run: `serve PORT TEXT`, `get ADDRESS`, `write FILE TEXT`, `read FILE`,
//! `owner FILE`, `environment NAME`, `status FIELD`; and guests: `echo PORT`, for datagrams
//! and connections.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::MetadataExt;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["serve", port, text] => {
            let listener = TcpListener::bind(format!("0.0.0.0:{port}")).unwrap();
            println!("serving {text}");
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 1024]);
                let _ = write!(stream, "HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len());
            }
        }
        ["get", address] => {
            let mut stream = TcpStream::connect(address).unwrap();
            write!(stream, "GET / HTTP/1.0\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            print!("{}", answer.rsplit("\r\n").next().unwrap());
        }
        ["echo", port] => {
            let listener = TcpListener::bind(format!("0.0.0.0:{port}")).unwrap();
            std::thread::spawn(move || listener.incoming().for_each(|stream| send_back(stream.unwrap())));
            let socket = UdpSocket::bind(format!("0.0.0.0:{port}")).unwrap();
            let mut datagram = [0; 65536];
            loop {
                let (length, from) = socket.recv_from(&mut datagram).unwrap();
                socket.send_to(&datagram[..length], from).unwrap();
            }
        }
        ["write", file, text] => std::fs::write(file, text).unwrap(),
        ["read", file] => print!("{}", std::fs::read_to_string(file).unwrap()),
        ["owner", file] => {
            let metadata = std::fs::metadata(file).unwrap();
            print!("{}:{}", metadata.uid(), metadata.gid());
        }
        ["environment", name] => print!("{}", std::env::var(name).unwrap()),
        ["status", field] => {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let mut lines = status.lines().filter_map(|line| line.split_once(":\t"));
            print!("{}", lines.find(|(name, _)| name == field).unwrap().1);
        }
        other => panic!("{other:?}"),
    }
}

/// Sends all back that comes, beside everything else.
fn send_back(stream: TcpStream) {
    std::thread::spawn(move || std::io::copy(&mut &stream, &mut &stream));
}
