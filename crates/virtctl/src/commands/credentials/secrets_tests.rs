use super::*;

fn credentials() -> Vec<AccessCredential> {
    serde_json::from_value(json!([
        { "sshPublicKey": { "source": { "secret": { "secretName": "one" } },
          "propagationMethod": { "qemuGuestAgent": { "users": ["me", "you"] } } } },
        { "sshPublicKey": { "source": { "secret": { "secretName": "cloud" } }, "propagationMethod": { "noCloud": {} } } },
        { "sshPublicKey": { "source": {}, "propagationMethod": { "qemuGuestAgent": { "users": ["me"] } } } },
        { "sshPublicKey": { "source": { "secret": { "secretName": "two" } },
          "propagationMethod": { "qemuGuestAgent": { "users": ["me"] } } } },
        { "userPassword": { "source": { "secret": { "secretName": "words" } },
          "propagationMethod": { "qemuGuestAgent": {} } } },
        { "userPassword": { "source": { "secret": { "secretName": "none" } }, "propagationMethod": {} } },
    ]))
    .unwrap()
}

fn secret(entries: &[(&str, &str)]) -> Secret {
    let data = entries.iter().map(|(name, text)| ((*name).to_owned(), ByteString((*text).into()))).collect();
    let metadata = ObjectMeta { resource_version: Some("7".into()), ..Default::default() };
    Secret { data: Some(data), metadata, ..Default::default() }
}

#[test]
fn the_secrets_of_a_user_are_found() {
    assert_eq!(with_keys_of(&credentials(), "me"), ["one", "two"]);
    assert_eq!(with_keys_of(&credentials(), "you"), ["one"]);
    assert!(with_keys_of(&credentials(), "nobody").is_empty());
    assert_eq!(with_passwords(&credentials()), ["words"]);
}

#[test]
fn one_secret_is_chosen() {
    let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(chosen(None, &all(&["a"])), Ok("a".to_owned()));
    assert_eq!(chosen(Some("b"), &all(&["a", "b"])), Ok("b".to_owned()));
    assert_eq!(chosen(None, &all(&["a", "b"])), Err(Error::Several("a, b".into())));
    assert_eq!(chosen(Some("c"), &all(&["a", "b"])), Err(Error::NotAssigned("c".into())));
}

#[test]
fn a_key_is_a_line_and_not_part_of_one() {
    let one = secret(&[("a", "ssh-rsa AAAA me@here\n\nssh-rsa BBBB")]);
    assert!(contains(&one, "ssh-rsa AAAA") && contains(&one, "ssh-rsa BBBB"));
    assert!(contains(&one, "ssh-rsa BBBB\nssh-rsa AAAA\n") && !contains(&one, "ssh-rsa BBBB\nssh-rsa CCCC"));
    assert!(!contains(&one, "ssh-rsa AA") && !contains(&one, "ssh-rsa CCCC"));
}

#[test]
fn a_key_is_taken_out() {
    let all = secret(&[("a", "key 1\nkey 2\n"), ("b", "key 1 me\n"), ("c", "key 3")]);
    let patch = without(&all, "key 1").unwrap();
    let expected = json!({ "metadata": { "resourceVersion": "7" }, "data": { "a": STANDARD.encode("key 2"), "b": null } });
    assert_eq!(patch, expected);
    assert_eq!(without(&all, "key 4"), None);
    let both = without(&all, "key 1\nkey 2\n").unwrap();
    assert_eq!(both["data"], json!({ "a": null, "b": null }));
    let binary = Secret {
        data: Some(BTreeMap::from([("x".to_owned(), ByteString(vec![0xff, 0xfe]))])),
        ..Default::default()
    };
    assert_eq!(without(&binary, "key"), None);
}

#[test]
fn a_new_secret_is_the_machines_own() {
    let vm = ObjectMeta { name: Some("vm".into()), uid: Some("u".into()), ..Default::default() };
    let made = new(&vm, "ssh-key-x", "key");
    assert!(is_owned(&made.metadata, &vm));
    let other = ObjectMeta { uid: Some("v".into()), ..vm.clone() };
    assert!(!is_owned(&made.metadata, &other));
    assert!(!is_owned(&ObjectMeta::default(), &vm));
    assert_eq!(made.metadata.generate_name.as_deref(), Some("vm-ssh-key-"));
    assert_eq!(with_keys_of(&[credential("s", "me")], "me"), ["s"]);
}

#[test]
fn a_list_is_made_where_there_is_none() {
    let credential = credential("s", "me");
    let known = add_credential(true, &credential);
    assert_eq!(known[0]["path"], "/spec/template/spec/accessCredentials/-");
    let unknown = add_credential(false, &credential);
    assert_eq!(unknown[1]["value"][0]["sshPublicKey"]["source"]["secret"]["secretName"], "s");
    assert_eq!(entry("me", "pw"), json!({ "data": { "me": "cHc=" } }));
}
