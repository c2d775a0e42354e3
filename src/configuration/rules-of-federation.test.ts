import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { load, problemsOf, type RuleCase, testRules } from './test/rule-case.ts';

const key = 'Noi6WqcDj0QmPxCNQqgezwTlBKrfqehY1u2FyWP9uYw';

/** A document without options of federation: their defaults apply. */
const unrelatedOption = 'pid_file: null';

const cases: RuleCase[] = [
  {
    rule: 'refuses key servers without verify_keys while certificates are not verified',
    invalid: 'federation_verify_certificates: false\ntrusted_key_servers: [{server_name: keys.example.org}]',
    kind: 'error',
    path: 'trusted_key_servers[0]',
    message: /keys.example.org needs verify_keys .* accept_keys_insecurely: true/,
    valid: `federation_verify_certificates: false\ntrusted_key_servers: [{server_name: keys.example.org, verify_keys: {"ed25519:a": ${key}}}]`,
  },
  {
    rule: 'refuses the default key server while certificates are not verified',
    invalid: 'federation_verify_certificates: false',
    kind: 'error',
    path: 'trusted_key_servers[0]',
    message: /matrix.org needs verify_keys/,
    valid: 'federation_verify_certificates: false\ntrusted_key_servers: []',
  },
  {
    rule: 'reports the use of matrix.org as a key server as a notice',
    invalid: unrelatedOption,
    kind: 'notice',
    path: 'trusted_key_servers',
    message: /suppress_key_server_warning: true/,
    valid: 'suppress_key_server_warning: true',
  },
  {
    rule: 'warns about servers that are exempt from the verification of certificates while no certificates are verified',
    invalid:
      'federation_verify_certificates: false\ntrusted_key_servers: []\nfederation_certificate_verification_whitelist: ["*.example.org"]',
    kind: 'warning',
    path: 'federation_certificate_verification_whitelist',
    message: /has no effect while federation_verify_certificates is off/,
    valid: 'federation_certificate_verification_whitelist: ["*.example.org"]',
  },
  {
    rule: 'warns about ip_range_blacklist together with a proxy',
    invalid: 'https_proxy: "http://proxy:3128"\nip_range_blacklist: [10.0.0.0/8]',
    kind: 'warning',
    path: 'ip_range_blacklist',
    message: /has no effect on requests through a proxy/,
    valid: 'ip_range_blacklist: [10.0.0.0/8]',
  },
  {
    rule: 'refuses old_signing_keys whose ids are not ids of signing keys',
    invalid: `old_signing_keys: {"rsa:a": {key: ${key}, expired_ts: 1}}`,
    kind: 'error',
    path: 'old_signing_keys.rsa:a',
    message: /allowed: a key id like ed25519:a_AbCd/,
    valid: `old_signing_keys: {"ed25519:a": {key: ${key}, expired_ts: 1}}`,
  },
];

describe('configuration rules of federation', () => {
  testRules(cases);

  it('reports no notice about the key server matrix.org when suppress_key_server_warning is set [option: suppress_key_server_warning]', () => {
    const remarks = (document: string) =>
      problemsOf(document, 'notice').filter(({ path }) => path === 'trusted_key_servers');
    assert.equal(remarks(unrelatedOption).length, 1);
    assert.deepEqual(remarks('suppress_key_server_warning: true'), []);
  });

  it('accepts key servers without verify_keys when accept_keys_insecurely is set [option: trusted_key_servers[].accept_keys_insecurely]', () => {
    const document = (accept: boolean) =>
      `federation_verify_certificates: false\ntrusted_key_servers: [{server_name: a.org, accept_keys_insecurely: ${accept}}]`;
    assert.deepEqual(
      load(document(false)).errors.map(({ path }) => path),
      ['trusted_key_servers[0]'],
    );
    assert.deepEqual(load(document(true)).errors, []);
  });
});
