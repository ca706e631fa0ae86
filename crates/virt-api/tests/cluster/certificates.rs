//! Certificates, and the folder that they are mounted in.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair,
};

/// The host name of the Service that the aggregator is told of.
pub const SERVICE: &str = "virt-api.virt-api-aggregated.svc";

/// An authority.
pub struct Authority {
    pub pem: String,
    pub der: Vec<u8>,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let own = params.self_signed(&key).unwrap();
        Self { pem: own.pem(), der: own.der().to_vec(), issuer: Issuer::new(params, key) }
    }
}

impl Authority {
    /// A certificate of this name and its key, both as PEM.
    pub fn issue(&self, name: &str, usage: ExtendedKeyUsagePurpose) -> (String, String) {
        let mut params = CertificateParams::new(vec!["virt-handler".to_owned()]).unwrap();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }
}

/// A folder with a certificate for the loopback, swapped as a kubelet swaps what it mounts.
pub struct Mount(PathBuf);

impl Mount {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("virt-api-{name}"));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn folder(&self) -> &Path {
        &self.0
    }

    pub fn certificate(&self) -> PathBuf {
        self.0.join("tls.crt")
    }

    pub fn key(&self) -> PathBuf {
        self.0.join("tls.key")
    }

    /// Puts a new certificate of the authority in place of the old one.
    pub fn renew(&self, authority: &Authority) {
        let key = KeyPair::generate().unwrap();
        // The aggregator asks for the name of the Service, of whatever namespace.
        let names = ["127.0.0.1".to_owned(), SERVICE.to_owned()];
        let params = CertificateParams::new(names).unwrap();
        let own = params.signed_by(&key, &authority.issuer).unwrap();
        let folder =
            (0..).map(|number| self.0.join(format!("..{number}"))).find(|path| !path.exists()).unwrap();
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("tls.crt"), own.pem()).unwrap();
        fs::write(folder.join("tls.key"), key.serialize_pem()).unwrap();
        for name in ["tls.crt", "tls.key"] {
            // There already, but for the first time.
            let _ = symlink(Path::new("..data").join(name), self.0.join(name));
        }
        symlink(folder.file_name().unwrap(), self.0.join("..data_tmp")).unwrap();
        fs::rename(self.0.join("..data_tmp"), self.0.join("..data")).unwrap();
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
