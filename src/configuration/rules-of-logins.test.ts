import { describe } from 'node:test';
import { type RuleCase, testRules } from './test/rule-case.ts';

const provider = 'idp_id: a, issuer: "https://a.org", client_id: c';

const cases: RuleCase[] = [
  {
    rule: 'providers have different ids',
    breaks: `oidc_providers: [{${provider}, client_secret: s}, {${provider}, client_secret: s}]`,
    kind: 'error',
    path: 'oidc_providers[1].idp_id',
    says: /a is the id of another provider/,
    keeps: `oidc_providers: [{${provider}, client_secret: s}]`,
  },
  {
    rule: 'a provider knows this server by a secret',
    breaks: `oidc_providers: [{${provider}}]`,
    kind: 'error',
    path: 'oidc_providers[0].client_secret',
    says: /must be given, or client_secret_path, client_secret_jwt_key, or client_auth_method: none/,
    keeps: `oidc_providers: [{${provider}, client_auth_method: none}]`,
  },
  {
    rule: 'a key for tokens is given once',
    breaks: `oidc_providers: [{${provider}, client_secret_jwt_key: {key: k, key_file: f, jwt_header: {alg: ES256}}}]`,
    kind: 'error',
    path: 'oidc_providers[0].client_secret_jwt_key',
    says: /needs one of key and key_file/,
    keeps: `oidc_providers: [{${provider}, client_secret_jwt_key: {key: k, jwt_header: {alg: ES256}}}]`,
  },
  {
    rule: 'a key for tokens is given',
    breaks: `oidc_providers: [{${provider}, client_secret_jwt_key: {jwt_header: {alg: ES256}}}]`,
    kind: 'error',
    path: 'oidc_providers[0].client_secret_jwt_key',
    says: /needs one of key and key_file/,
    keeps: `oidc_providers: [{${provider}, client_secret_jwt_key: {key_file: f, jwt_header: {alg: ES256}}}]`,
  },
  {
    rule: 'a key for tokens says how it signs',
    breaks: `oidc_providers: [{${provider}, client_secret_jwt_key: {key: k, jwt_header: {typ: JWT}}}]`,
    kind: 'error',
    path: 'oidc_providers[0].client_secret_jwt_key.jwt_header.alg',
    says: /must be given/,
    keeps: `oidc_providers: [{${provider}, client_secret_jwt_key: {key: k, jwt_header: {alg: ES256}}}]`,
  },
  ...(['authorization_endpoint', 'token_endpoint', 'jwks_uri'] as const).map(
    (missing): RuleCase => ({
      rule: `without discovery, a provider with the scope openid has its ${missing}`,
      breaks: `oidc_providers: [{${provider}, client_secret: s, discover: false${endpoints(missing)}}]`,
      kind: 'error',
      path: `oidc_providers[0].${missing}`,
      says: /must be given when discover is off/,
      keeps: `oidc_providers: [{${provider}, client_secret: s, discover: false${endpoints()}}]`,
    }),
  ),
  {
    rule: 'without discovery and without the scope openid, a provider has its userinfo_endpoint',
    breaks: `oidc_providers: [{${provider}, client_secret: s, discover: false, scopes: [user]${endpoints()}}]`,
    kind: 'error',
    path: 'oidc_providers[0].userinfo_endpoint',
    says: /must be given when discover is off/,
    keeps: `oidc_providers: [{${provider}, client_secret: s, discover: false, scopes: [user], userinfo_endpoint: "https://a.org/u"${endpoints()}}]`,
  },
  ...(['subject', 'picture'] as const).map(
    (name): RuleCase => ({
      rule: `${name}_claim is deprecated`,
      breaks: `oidc_providers: [{${provider}, client_secret: s, user_mapping_provider: {config: {${name}_claim: c}}}]`,
      kind: 'warning',
      path: `oidc_providers[0].user_mapping_provider.config.${name}_claim`,
      says: new RegExp(`deprecated since 1.75.0; use ${name}_template`),
      keeps: `oidc_providers: [{${provider}, client_secret: s, user_mapping_provider: {config: {${name}_template: c}}}]`,
    }),
  ),
  {
    rule: 'SAML2 needs a service provider',
    breaks: 'saml2_config: {idp_name: Work}',
    kind: 'warning',
    path: 'saml2_config',
    says: /turns nothing on: it needs sp_config or config_path/,
    keeps: 'saml2_config: {config_path: sp.json}',
  },
  {
    rule: 'CAS needs its server',
    breaks: 'cas_config: {enabled: true}',
    kind: 'error',
    path: 'cas_config.server_url',
    says: /must be given when CAS is enabled/,
    keeps: 'cas_config: {enabled: true, server_url: "https://cas.example.org"}',
  },
  {
    rule: 'attributes of CAS need its third version',
    breaks:
      'cas_config: {enabled: true, server_url: "https://cas.example.org", required_attributes: {group: null}}',
    kind: 'error',
    path: 'cas_config.required_attributes',
    says: /needs protocol_version: 3/,
    keeps:
      'cas_config: {enabled: true, server_url: "https://cas.example.org", required_attributes: {group: null}, protocol_version: 3}',
  },
  ...(['secret', 'algorithm'] as const).map(
    (name): RuleCase => ({
      rule: `tokens need their ${name}`,
      breaks: `jwt_config: {enabled: true, ${name === 'secret' ? 'algorithm: HS256' : 'secret: s'}}`,
      kind: 'error',
      path: `jwt_config.${name}`,
      says: /must be given when JSON web tokens are enabled/,
      keeps: 'jwt_config: {enabled: true, secret: s, algorithm: HS256}',
    }),
  ),
];

function endpoints(without?: string): string {
  const names = ['authorization_endpoint', 'token_endpoint', 'jwks_uri'].filter((name) => name !== without);
  return names.map((name) => `, ${name}: "https://a.org/${name}"`).join('');
}

describe('rules of logins elsewhere', () => {
  testRules(cases);
});
