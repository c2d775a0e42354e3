import { describe } from 'node:test';
import { type RuleCase, testRules } from './test/rule-case.ts';

const provider = 'idp_id: a, issuer: "https://a.org", client_id: c';

const cases: RuleCase[] = [
  {
    rule: 'refuses to be an OAuth 2.0 authorization server together with an authentication service',
    invalid: 'oauth2: {enabled: true}\nproto_authentication_service: {enabled: true, secret: s}',
    kind: 'error',
    path: 'oauth2.enabled',
    message: /cannot be combined with proto_authentication_service/,
    valid: 'oauth2: {enabled: true}',
  },
  {
    rule: 'refuses two providers with the same id',
    invalid: `oidc_providers: [{${provider}, client_secret: s}, {${provider}, client_secret: s}]`,
    kind: 'error',
    path: 'oidc_providers[1].idp_id',
    message: /a is the id of another provider/,
    valid: `oidc_providers: [{${provider}, client_secret: s}]`,
  },
  {
    rule: 'requires a secret with which this server authenticates at an OpenID Connect provider',
    invalid: `oidc_providers: [{${provider}}]`,
    kind: 'error',
    path: 'oidc_providers[0].client_secret',
    message: /must be given, or client_secret_path, client_secret_jwt_key, or client_auth_method: none/,
    valid: `oidc_providers: [{${provider}, client_auth_method: none}]`,
  },
  {
    rule: 'refuses both key and key_file in client_secret_jwt_key',
    invalid: `oidc_providers: [{${provider}, client_secret_jwt_key: {key: k, key_file: f, jwt_header: {alg: ES256}}}]`,
    kind: 'error',
    path: 'oidc_providers[0].client_secret_jwt_key',
    message: /needs either key or key_file, not both/,
    valid: `oidc_providers: [{${provider}, client_secret_jwt_key: {key: k, jwt_header: {alg: ES256}}}]`,
  },
  {
    rule: 'requires key or key_file in client_secret_jwt_key',
    invalid: `oidc_providers: [{${provider}, client_secret_jwt_key: {jwt_header: {alg: ES256}}}]`,
    kind: 'error',
    path: 'oidc_providers[0].client_secret_jwt_key',
    message: /needs either key or key_file, not both/,
    valid: `oidc_providers: [{${provider}, client_secret_jwt_key: {key_file: f, jwt_header: {alg: ES256}}}]`,
  },
  {
    rule: 'warns about an issuer without TLS whose metadata is verified',
    invalid: 'oidc_providers: [{idp_id: a, issuer: "http://a.org", client_id: c, client_secret: s}]',
    kind: 'warning',
    path: 'oidc_providers[0].issuer',
    message: /is not an https:\/\/ URL: logins fail unless skip_verification is on/,
    valid:
      'oidc_providers: [{idp_id: a, issuer: "http://a.org", client_id: c, client_secret: s, skip_verification: true}]',
  },
  {
    rule: 'requires alg in client_secret_jwt_key.jwt_header',
    invalid: `oidc_providers: [{${provider}, client_secret_jwt_key: {key: k, jwt_header: {typ: JWT}}}]`,
    kind: 'error',
    path: 'oidc_providers[0].client_secret_jwt_key.jwt_header.alg',
    message: /must be given/,
    valid: `oidc_providers: [{${provider}, client_secret_jwt_key: {key: k, jwt_header: {alg: ES256}}}]`,
  },
  ...(['authorization_endpoint', 'token_endpoint', 'jwks_uri'] as const).map(
    (missing): RuleCase => ({
      rule: `requires the ${missing} of a provider with the scope openid if discover is off`,
      invalid: `oidc_providers: [{${provider}, client_secret: s, discover: false${endpoints(missing)}}]`,
      kind: 'error',
      path: `oidc_providers[0].${missing}`,
      message: /must be given when discover is off/,
      valid: `oidc_providers: [{${provider}, client_secret: s, discover: false${endpoints()}}]`,
    }),
  ),
  {
    rule: 'requires the userinfo_endpoint of a provider without the scope openid if discover is off',
    invalid: `oidc_providers: [{${provider}, client_secret: s, discover: false, scopes: [user]${endpoints()}}]`,
    kind: 'error',
    path: 'oidc_providers[0].userinfo_endpoint',
    message: /must be given when discover is off/,
    valid: `oidc_providers: [{${provider}, client_secret: s, discover: false, scopes: [user], userinfo_endpoint: "https://a.org/u"${endpoints()}}]`,
  },
  ...(['subject', 'picture'] as const).map(
    (name): RuleCase => ({
      rule: `warns that ${name}_claim is deprecated`,
      invalid: `oidc_providers: [{${provider}, client_secret: s, user_mapping_provider: {config: {${name}_claim: c}}}]`,
      kind: 'warning',
      path: `oidc_providers[0].user_mapping_provider.config.${name}_claim`,
      message: new RegExp(`is deprecated; use ${name}_template`),
      valid: `oidc_providers: [{${provider}, client_secret: s, user_mapping_provider: {config: {${name}_template: c}}}]`,
    }),
  ),
  {
    rule: 'refuses a Python module for the mapping of OpenID Connect users, and accepts the name of the built-in mapping',
    invalid: `oidc_providers: [{${provider}, client_secret: s, user_mapping_provider: {module: my_company.mapping.UserMapper}}]`,
    kind: 'error',
    path: 'oidc_providers[0].user_mapping_provider.module',
    message: /my_company.mapping.UserMapper is a program in Python.* Delete it .*docs\/modules.md/,
    valid: `oidc_providers: [{${provider}, client_secret: s, user_mapping_provider: {module: server.handlers.oidc_handler.JinjaOidcMappingProvider}}]`,
  },
  {
    rule: 'refuses a Python module for the mapping of SAML users, and accepts the name of the built-in mapping',
    invalid: 'saml2_config: {sp_config: {}, user_mapping_provider: {module: mapping_provider.SamlMapper}}',
    kind: 'error',
    path: 'saml2_config.user_mapping_provider.module',
    message: /mapping_provider.SamlMapper is a program in Python/,
    valid:
      'saml2_config: {sp_config: {}, user_mapping_provider: {module: server.handlers.saml.DefaultSamlMappingProvider}}',
  },
  {
    rule: 'warns about saml2_config without sp_config and config_path',
    invalid: 'saml2_config: {idp_name: Work}',
    kind: 'warning',
    path: 'saml2_config',
    message: /turns nothing on: it needs sp_config or config_path/,
    valid: 'saml2_config: {config_path: sp.json}',
  },
  {
    rule: 'warns about cas_config without enabled',
    invalid: 'cas_config: {server_url: "https://cas.example.org"}',
    kind: 'warning',
    path: 'cas_config',
    message: /turns nothing on: it needs enabled: true/,
    valid: 'cas_config: {enabled: false, server_url: "https://cas.example.org"}',
  },
  {
    rule: 'requires the server_url of CAS',
    invalid: 'cas_config: {enabled: true}',
    kind: 'error',
    path: 'cas_config.server_url',
    message: /must be given when CAS is enabled/,
    valid: 'cas_config: {enabled: true, server_url: "https://cas.example.org"}',
  },
  {
    rule: 'requires protocol_version 3 for required_attributes of CAS',
    invalid:
      'cas_config: {enabled: true, server_url: "https://cas.example.org", required_attributes: {group: null}}',
    kind: 'error',
    path: 'cas_config.required_attributes',
    message: /needs protocol_version: 3/,
    valid:
      'cas_config: {enabled: true, server_url: "https://cas.example.org", required_attributes: {group: null}, protocol_version: 3}',
  },
  ...(['secret', 'algorithm'] as const).map(
    (name): RuleCase => ({
      rule: `requires the ${name} of JSON web tokens`,
      invalid: `jwt_config: {enabled: true, ${name === 'secret' ? 'algorithm: HS256' : 'secret: s'}}`,
      kind: 'error',
      path: `jwt_config.${name}`,
      message: /must be given when JSON web tokens are enabled/,
      valid: 'jwt_config: {enabled: true, secret: s, algorithm: HS256}',
    }),
  ),
  {
    rule: 'refuses unknown algorithms of JSON web tokens',
    invalid: 'jwt_config: {enabled: true, secret: s, algorithm: none}',
    kind: 'error',
    path: 'jwt_config.algorithm',
    message: /none is not a known signature algorithm/,
    valid: 'jwt_config: {enabled: false, secret: s, algorithm: none}',
  },
  {
    rule: 'requires a public key for the algorithms of JSON web tokens that use one',
    invalid: 'jwt_config: {enabled: true, secret: s, algorithm: RS256}',
    kind: 'error',
    path: 'jwt_config.secret',
    message: /not a public key in PEM form/,
    valid: 'jwt_config: {enabled: true, secret: s, algorithm: HS256}',
  },
];

/** Returns members of a YAML mapping: the endpoints of an OpenID provider. @param without the endpoint to leave out */
function endpoints(without?: string): string {
  const names = ['authorization_endpoint', 'token_endpoint', 'jwks_uri'].filter((name) => name !== without);
  return names.map((name) => `, ${name}: "https://a.org/${name}"`).join('');
}

describe('configuration rules of external logins', () => {
  testRules(cases);
});
