use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use rcgen::{CertificateParams, Issuer, KeyPair};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::*;
use crate::serve::{Peer, Server};

const PATIENCE: Duration = Duration::from_secs(60);

/// An authority and the folder that its certificates are mounted in.
pub(crate) struct Authority {
    pub(crate) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// A certificate and its key, as PEM.
    pub(crate) fn issue(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }
}

/// A folder that is removed in the end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        let path = std::env::temp_dir().join(format!("tls-{}-{:x}", std::process::id(), fastrand::u64(..)));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Puts files where a kubelet mounts a Secret: in a folder of their own that a link is turned to.
    pub(crate) fn mount(&self, files: &[(&str, &str)]) {
        let data = self.0.join(format!("..{:x}", fastrand::u64(..)));
        fs::create_dir(&data).unwrap();
        for (name, text) in files {
            fs::write(data.join(name), text).unwrap();
            let _ = symlink(Path::new("..data").join(name), self.0.join(name));
        }
        symlink(data.file_name().unwrap(), self.0.join("..data_tmp")).unwrap();
        fs::rename(self.0.join("..data_tmp"), self.0.join("..data")).unwrap();
    }

    pub(crate) fn files(&self) -> Files {
        Files { certificate: self.0.join("tls.crt"), key: self.0.join("tls.key") }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn follow(
    files: Files,
    clients: Option<Clients>,
    stop: &CancellationToken,
) -> Result<Tls, NotUsable> {
    let policy = watch::channel(Policy::default()).1;
    Tls::follow_every(Duration::from_millis(20), files, clients, policy, stop)
}

/// A server that says how many certificates its client has shown.
async fn serve(tls: Tls, stop: &CancellationToken) -> std::net::SocketAddr {
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), tls).await.unwrap();
    let address = server.address().unwrap();
    let answer = async |peer: axum::Extension<Peer>| peer.certificates.len().to_string();
    let router = axum::Router::new().route("/", axum::routing::get(answer));
    let stop = stop.clone();
    tokio::spawn(async move { server.serve(router, &stop).await });
    address
}

type Connection = tokio_rustls::client::TlsStream<TcpStream>;

async fn connect(
    address: std::net::SocketAddr,
    trusted: &str,
    own: Option<&(String, String)>,
) -> std::io::Result<Connection> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates("test", trusted.as_bytes()).unwrap());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
    let config = match own {
        Some((certificate, key)) => {
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
            builder.with_client_auth_cert(certificates("own", certificate.as_bytes()).unwrap(), key).unwrap()
        }
        None => builder.with_no_client_auth(),
    };
    let stream = TcpStream::connect(address).await?;
    TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("server").unwrap(), stream).await
}

/// The body of the answer to a request.
async fn ask(connection: &mut Connection) -> std::io::Result<String> {
    connection.write_all(b"GET / HTTP/1.1\r\nhost: server\r\n\r\n").await?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"0") && !answer.ends_with(b"1")
        || !answer.windows(4).any(|four| four == b"\r\n\r\n")
    {
        let mut bytes = [0; 1024];
        match connection.read(&mut bytes).await? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            count => answer.extend_from_slice(&bytes[..count]),
        }
    }
    let text = String::from_utf8(answer).unwrap();
    Ok(text.split("\r\n\r\n").nth(1).unwrap_or_default().to_owned())
}

async fn until<T>(mut attempt: impl AsyncFnMut() -> Option<T>) -> T {
    let wait = async {
        loop {
            match attempt().await {
                Some(found) => return found,
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("it did not happen")
}

#[tokio::test]
async fn a_new_certificate_holds_for_new_connections_only() {
    let (old, new, folder, stop) =
        (Authority::new("old"), Authority::new("new"), Folder::new(), CancellationToken::new());
    let (certificate, key) = old.issue("server");
    folder.mount(&[("tls.crt", &certificate), ("tls.key", &key)]);
    let address = serve(follow(folder.files(), None, &stop).unwrap(), &stop).await;
    let mut open = connect(address, &old.pem, None).await.unwrap();
    assert_eq!(ask(&mut open).await.unwrap(), "0");

    // A certificate without its key is not used, whatever else happens.
    let (certificate, new_key) = new.issue("server");
    folder.mount(&[("tls.crt", &certificate), ("tls.key", &key)]);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(connect(address, &old.pem, None).await.is_ok());

    folder.mount(&[("tls.crt", &certificate), ("tls.key", &new_key)]);
    let mut fresh = until(async || connect(address, &new.pem, None).await.ok()).await;
    assert_eq!(ask(&mut fresh).await.unwrap(), "0");
    assert_eq!(ask(&mut open).await.unwrap(), "0");
    assert!(connect(address, &old.pem, None).await.is_err());
    stop.cancel();
}

#[tokio::test]
async fn clients_are_believed_by_the_latest_authorities() {
    let (servers, old, new) = (Authority::new("servers"), Authority::new("old"), Authority::new("new"));
    let (folder, stop) = (Folder::new(), CancellationToken::new());
    let (certificate, key) = servers.issue("server");
    folder.mount(&[("tls.crt", &certificate), ("tls.key", &key)]);
    let (sender, live) = watch::channel(old.pem.clone());
    let clients = Clients { authorities: Authorities::Live(live), required: false };
    let address = serve(follow(folder.files(), Some(clients), &stop).unwrap(), &stop).await;
    let answer = async |own: Option<&(String, String)>| {
        let mut connection = connect(address, &servers.pem, own).await?;
        ask(&mut connection).await
    };
    let (of_old, of_new) = (old.issue("client"), new.issue("client"));
    assert_eq!(answer(None).await.unwrap(), "0");
    assert_eq!(answer(Some(&of_old)).await.unwrap(), "1");
    assert!(answer(Some(&of_new)).await.is_err());

    sender.send_replace(new.pem.clone());
    let now = until(async || answer(Some(&of_new)).await.ok()).await;
    assert_eq!(now, "1");
    assert!(answer(Some(&of_old)).await.is_err());

    let clients = Clients { authorities: Authorities::Live(sender.subscribe()), required: true };
    let address = serve(follow(folder.files(), Some(clients), &stop).unwrap(), &stop).await;
    let strict = async |own: Option<&(String, String)>| {
        let mut connection = connect(address, &servers.pem, own).await?;
        ask(&mut connection).await
    };
    assert!(strict(None).await.is_err());
    assert_eq!(strict(Some(&of_new)).await.unwrap(), "1");
    stop.cancel();
}

#[tokio::test]
async fn what_cannot_be_used_is_said_at_the_start() {
    let (authority, folder, stop) = (Authority::new("a"), Folder::new(), CancellationToken::new());
    assert!(matches!(follow(folder.files(), None, &stop), Err(NotUsable::File(..))));
    let ((certificate, _), (_, key)) = (authority.issue("server"), authority.issue("server"));
    folder.mount(&[("tls.crt", &certificate), ("tls.key", &key)]);
    assert!(matches!(follow(folder.files(), None, &stop), Err(NotUsable::Tls(_))));
    folder.mount(&[("tls.crt", ""), ("tls.key", &key)]);
    assert!(matches!(follow(folder.files(), None, &stop), Err(NotUsable::Empty(_))));
}

#[tokio::test]
async fn requests_that_were_begun_are_answered_to_the_end() {
    let (authority, folder, stop) = (Authority::new("a"), Folder::new(), CancellationToken::new());
    let (certificate, key) = authority.issue("server");
    folder.mount(&[("tls.crt", &certificate), ("tls.key", &key)]);
    let tls = follow(folder.files(), None, &stop).unwrap();
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), tls).await.unwrap();
    let address = server.address().unwrap();
    let asked = stop.clone();
    let answer = async move || {
        asked.cancel();
        tokio::time::sleep(Duration::from_millis(200)).await;
        "1"
    };
    let router = axum::Router::new().route("/", axum::routing::get(answer));
    let ended = tokio::spawn({
        let stop = stop.clone();
        async move { server.serve(router, &stop).await }
    });
    let mut connection = connect(address, &authority.pem, None).await.unwrap();
    assert_eq!(ask(&mut connection).await.unwrap(), "1");
    tokio::time::timeout(PATIENCE, ended).await.expect("the server ends").unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}
