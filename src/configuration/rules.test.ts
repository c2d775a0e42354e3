import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { loadConfigurationSources } from './load.ts';

interface Case {
  readonly rule: string;
  /** A document that breaks the rule; the server name and the listed files are added. */
  readonly breaks: string;
  readonly kind: 'error' | 'warning' | 'notice';
  readonly path: string;
  readonly says: RegExp;
  /** A document that keeps the rule, close to the one that breaks it. */
  readonly keeps: string;
}

function load(document: string) {
  const text = document.startsWith('server_name') ? document : `server_name: example.org\n${document}`;
  return loadConfigurationSources([{ file: 'homeserver.yaml', text }], { environment: {}, directory: '.' });
}

function findings(document: string, kind: Case['kind']) {
  const { errors, warnings, notices } = load(document);
  return { error: errors, warning: warnings, notice: notices }[kind];
}

const key = 'Noi6WqcDj0QmPxCNQqgezwTlBKrfqehY1u2FyWP9uYw';
const socket = '{path: /run/h.sock, type: http';
const provider = 'idp_id: a, issuer: "https://a.org", client_id: c';

const cases: Case[] = [
  {
    rule: 'there is a server name',
    breaks: 'server_name:',
    kind: 'error',
    path: 'server_name',
    says: /must be given/,
    keeps: 'server_name: example.org',
  },
  {
    rule: 'the server name is in lowercase',
    breaks: 'server_name: Example.org',
    kind: 'error',
    path: 'server_name',
    says: /found "Example.org"; allowed: a lowercase host name/,
    keeps: 'server_name: "example.org:8448"',
  },
  {
    rule: 'database and databases exclude each other',
    breaks: 'database: {name: psycopg2}\ndatabases: {a: {name: psycopg2, data_stores: [main, state]}}',
    kind: 'error',
    path: 'databases',
    says: /cannot be given together with database/,
    keeps: 'databases: {a: {name: psycopg2, data_stores: [main, state]}}',
  },
  {
    rule: 'several databases are PostgreSQL databases',
    breaks: 'databases: {a: {name: sqlite3, args: {database: x}, data_stores: [main, state]}}',
    kind: 'error',
    path: 'databases.a.name',
    says: /with PostgreSQL \(psycopg2\) only/,
    keeps: 'databases: {a: {name: psycopg2, data_stores: [main]}, b: {name: psycopg2, data_stores: [state]}}',
  },
  {
    rule: 'each data store is in one database',
    breaks: 'databases: {a: {name: psycopg2, data_stores: [main]}}',
    kind: 'error',
    path: 'databases',
    says: /the data store state must be in exactly one database, found in 0/,
    keeps: 'databases: {a: {name: psycopg2, data_stores: [state, main]}}',
  },
  {
    rule: 'a SQLite database has a file',
    breaks: 'database: {name: sqlite3}',
    kind: 'error',
    path: 'database.args.database',
    says: /must be given/,
    keeps: 'database: {name: sqlite3, args: {database: h.db}}',
  },
  {
    rule: 'limiting active users needs their number',
    breaks: 'limit_usage_by_mau: true',
    kind: 'error',
    path: 'max_mau_value',
    says: /must be given, and be above 0, with limit_usage_by_mau/,
    keeps: 'limit_usage_by_mau: true\nmax_mau_value: 5',
  },
  {
    rule: 'previews need a list of forbidden addresses',
    breaks: 'url_preview_enabled: true',
    kind: 'error',
    path: 'url_preview_enabled',
    says: /needs url_preview_ip_range_blacklist/,
    keeps: 'url_preview_enabled: true\nurl_preview_ip_range_blacklist: []',
  },
  ...(['public', 'private'] as const).map(
    (half): Case => ({
      rule: `a CAPTCHA needs its ${half} key`,
      breaks: `enable_registration: true\nenable_registration_captcha: true\nrecaptcha_${half === 'public' ? 'private' : 'public'}_key: k`,
      kind: 'error',
      path: 'enable_registration_captcha',
      says: new RegExp(`needs recaptcha_${half}_key`),
      keeps:
        'enable_registration: true\nenable_registration_captcha: true\nrecaptcha_public_key: k\nrecaptcha_private_key: k',
    }),
  ),
  {
    rule: 'a CAPTCHA needs registration',
    breaks: 'enable_registration_captcha: true\nrecaptcha_public_key: k\nrecaptcha_private_key: k',
    kind: 'error',
    path: 'enable_registration_captcha',
    says: /needs enable_registration$/,
    keeps:
      'enable_registration: true\nenable_registration_captcha: true\nrecaptcha_public_key: k\nrecaptcha_private_key: k',
  },
  {
    rule: 'registration without any proof must be meant',
    breaks: 'enable_registration: true',
    kind: 'warning',
    path: 'enable_registration',
    says: /enable_registration_without_verification/,
    keeps: 'enable_registration: true\nenable_registration_without_verification: true',
  },
  ...(['private_chat', 'trusted_private_chat'] as const).map(
    (preset): Case => ({
      rule: `rooms made with ${preset} need someone to invite to them`,
      breaks: `autocreate_auto_join_room_preset: ${preset}`,
      kind: 'error',
      path: 'autocreate_auto_join_room_preset',
      says: new RegExp(`^${preset} needs auto_join_mxid_localpart`),
      keeps: `autocreate_auto_join_room_preset: ${preset}\nauto_join_mxid_localpart: host`,
    }),
  ),
  {
    rule: 'nobody else validates mail addresses any more',
    breaks: 'account_threepid_delegates: {email: "https://id.example.org"}',
    kind: 'error',
    path: 'account_threepid_delegates.email',
    says: /is gone since 1.66.0/,
    keeps: 'account_threepid_delegates: {msisdn: "https://id.example.org"}',
  },
  {
    rule: 'limited sessions do not go together with guests',
    breaks: 'session_lifetime: 24h\nallow_guest_access: true',
    kind: 'warning',
    path: 'session_lifetime',
    says: /allow_guest_access/,
    keeps: 'session_lifetime: infinity\nallow_guest_access: true',
  },
  {
    rule: 'an authentication service needs a secret',
    breaks: 'proto_authentication_service: {enabled: true}',
    kind: 'error',
    path: 'proto_authentication_service.secret',
    says: /must be given \(or secret_path\)/,
    keeps: 'proto_authentication_service: {enabled: true, secret: s}',
  },
  {
    rule: 'a LiveKit transport needs its URL',
    breaks: 'proto_rtc: {transports: [{type: livekit}]}',
    kind: 'error',
    path: 'proto_rtc.transports[0].livekit_service_url',
    says: /must be given when the type is livekit/,
    keeps: 'proto_rtc: {transports: [{type: livekit, livekit_service_url: "https://rtc.example.org"}]}',
  },
  {
    rule: 'only a LiveKit transport has that URL',
    breaks: 'proto_rtc: {transports: [{type: other, livekit_service_url: "https://rtc.example.org"}]}',
    kind: 'warning',
    path: 'proto_rtc.transports[0].livekit_service_url',
    says: /has no effect unless the type is livekit/,
    keeps: 'proto_rtc: {transports: [{type: other}]}',
  },
  {
    rule: 'guests get no notice when there is none',
    breaks: 'user_consent: {send_server_notice_to_guests: true}',
    kind: 'warning',
    path: 'user_consent.send_server_notice_to_guests',
    says: /has no effect without server_notice_content/,
    keeps: 'user_consent: {send_server_notice_to_guests: false}',
  },
  {
    rule: 'unproven keys stop the start while certificates are not verified',
    breaks: 'federation_verify_certificates: false\ntrusted_key_servers: [{server_name: keys.example.org}]',
    kind: 'error',
    path: 'trusted_key_servers[0]',
    says: /keys.example.org needs verify_keys .* accept_keys_insecurely: true/,
    keeps: `federation_verify_certificates: false\ntrusted_key_servers: [{server_name: keys.example.org, verify_keys: {"ed25519:a": ${key}}}]`,
  },
  {
    rule: 'the default key server needs verified certificates, too',
    breaks: 'federation_verify_certificates: false',
    kind: 'error',
    path: 'trusted_key_servers[0]',
    says: /matrix.org needs verify_keys/,
    keeps: 'federation_verify_certificates: false\ntrusted_key_servers: []',
  },
  {
    rule: 'the use of the public key server is remarked upon',
    breaks: 'pid_file: null',
    kind: 'notice',
    path: 'trusted_key_servers',
    says: /suppress_key_server_warning: true/,
    keeps: 'suppress_key_server_warning: true',
  },
  {
    rule: 'exemptions from verification need verification',
    breaks:
      'federation_verify_certificates: false\ntrusted_key_servers: []\nfederation_certificate_verification_whitelist: ["*.example.org"]',
    kind: 'warning',
    path: 'federation_certificate_verification_whitelist',
    says: /has no effect while federation_verify_certificates is off/,
    keeps: 'federation_certificate_verification_whitelist: ["*.example.org"]',
  },
  {
    rule: 'tuning caches takes all three numbers',
    breaks: 'caches: {cache_autotuning: {max_cache_memory_usage: 1024M}}',
    kind: 'error',
    path: 'caches.cache_autotuning',
    says: /is incomplete: target_cache_memory_usage and min_cache_ttl must be given too/,
    keeps:
      'caches: {cache_autotuning: {max_cache_memory_usage: 1024M, target_cache_memory_usage: 758M, min_cache_ttl: 5m}}',
  },
  {
    rule: 'a listener has a port or a path, not both',
    breaks: 'listeners: [{port: 1, path: /run/h.sock, type: http}]',
    kind: 'error',
    path: 'listeners[0].path',
    says: /cannot be given together with port/,
    keeps: `listeners: [${socket}}]`,
  },
  {
    rule: 'a listener has a port or a path',
    breaks: 'listeners: [{type: http}]',
    kind: 'error',
    path: 'listeners[0]',
    says: /needs a port or a path/,
    keeps: 'listeners: [{port: 8008, type: http}]',
  },
  {
    rule: 'the mode of a socket needs http',
    breaks: 'listeners: [{path: /run/h.sock, type: manhole, mode: 660}]',
    kind: 'error',
    path: 'listeners[0].mode',
    says: /needs type: http/,
    keeps: `listeners: [${socket}, mode: 660}]`,
  },
  {
    rule: 'a socket with a mode does not serve metrics',
    breaks: `enable_metrics: true\nlisteners: [${socket}, mode: 660, resources: [{names: [metrics]}]}]`,
    kind: 'error',
    path: 'listeners[0].mode',
    says: /when metrics is among the resources/,
    keeps: `listeners: [${socket}, mode: 660, resources: [{names: [client]}]}]`,
  },
  {
    rule: 'a mode is for sockets',
    breaks: 'listeners: [{port: 8008, type: http, mode: 660}]',
    kind: 'warning',
    path: 'listeners[0].mode',
    says: /has no effect without path/,
    keeps: 'listeners: [{port: 8008, type: http}]',
  },
  {
    rule: 'metrics as a resource are not on sockets',
    breaks: `enable_metrics: true\nlisteners: [${socket}, resources: [{names: [metrics]}]}]`,
    kind: 'error',
    path: 'listeners[0].resources[0].names',
    says: /metrics cannot be served on a Unix socket/,
    keeps: 'enable_metrics: true\nlisteners: [{port: 9000, type: http, resources: [{names: [metrics]}]}]',
  },
  {
    rule: 'a metrics listener is not on a socket',
    breaks: 'enable_metrics: true\nlisteners: [{path: /run/m.sock, type: metrics}]',
    kind: 'error',
    path: 'listeners[0].type',
    says: /metrics cannot be served on a Unix socket/,
    keeps: 'enable_metrics: true\nlisteners: [{port: 9000, type: metrics}]',
  },
  {
    rule: 'metrics are served when they are collected',
    breaks: 'listeners: [{port: 9000, type: metrics}]',
    kind: 'warning',
    path: 'listeners[0].type',
    says: /unless enable_metrics is on/,
    keeps: 'enable_metrics: true\nlisteners: [{port: 9000, type: metrics}]',
  },
  {
    rule: 'a socket has no addresses',
    breaks: `listeners: [${socket}, bind_addresses: ["::1"]}]`,
    kind: 'warning',
    path: 'listeners[0].bind_addresses',
    says: /has no effect on a Unix socket/,
    keeps: 'listeners: [{port: 8008, type: http, bind_addresses: ["::1"]}]',
  },
  {
    rule: 'a socket has no TLS',
    breaks: `listeners: [${socket}, tls: true}]`,
    kind: 'warning',
    path: 'listeners[0].tls',
    says: /has no effect on a Unix socket/,
    keeps: `listeners: [${socket}, tls: false}]`,
  },
  {
    rule: 'a listener with TLS needs certificate and key',
    breaks: 'listeners: [{port: 8448, type: http, tls: true}]\ntls_certificate_path: a.pem',
    kind: 'error',
    path: 'listeners[0].tls',
    says: /needs tls_certificate_path and tls_private_key_path/,
    keeps:
      'listeners: [{port: 8448, type: http, tls: true}]\ntls_certificate_path: a.pem\ntls_private_key_path: b.pem',
  },
  ...[
    'tag: a',
    'x_forwarded: true',
    'resources: [{names: [client]}]',
    'additional_resources: {/a: {module: m}}',
  ].map(
    (member): Case => ({
      rule: `only http listeners have ${member.split(':')[0]}`,
      breaks: `listeners: [{port: 9000, type: manhole, ${member}}]`,
      kind: 'warning',
      path: `listeners[0].${member.split(':')[0]}`,
      says: /has no effect with type: manhole/,
      keeps: `listeners: [{port: 9000, type: http, ${member}}]`,
    }),
  ),
  {
    rule: 'not everything can be compressed',
    breaks: 'listeners: [{port: 8008, type: http, resources: [{names: [client, media], compress: true}]}]',
    kind: 'warning',
    path: 'listeners[0].resources[0].compress',
    says: /has no effect on media/,
    keeps: 'listeners: [{port: 8008, type: http, resources: [{names: [client], compress: true}]}]',
  },
  {
    rule: 'the client well-known needs a public URL',
    breaks: 'extra_well_known_client_content: {a: b}',
    kind: 'warning',
    path: 'extra_well_known_client_content',
    says: /has no effect without public_baseurl/,
    keeps: 'extra_well_known_client_content: {a: b}\npublic_baseurl: "https://example.org/"',
  },
  {
    rule: 'an identity server is suggested with a public URL only',
    breaks: 'default_identity_server: "https://id.example.org"',
    kind: 'warning',
    path: 'default_identity_server',
    says: /has no effect without public_baseurl/,
    keeps: 'default_identity_server: "https://id.example.org"\npublic_baseurl: "https://example.org/"',
  },
  {
    rule: 'mail needs a sender',
    breaks: 'email: {smtp_host: mail.example.org}',
    kind: 'error',
    path: 'email.notif_from',
    says: /must be given when mail is sent/,
    keeps: 'email: {smtp_host: mail.example.org, notif_from: "a <a@example.org>"}',
  },
  {
    rule: 'STARTTLS is not required where TLS is forced',
    breaks: 'email: {notif_from: a, force_tls: true, require_transport_security: true}',
    kind: 'warning',
    path: 'email.require_transport_security',
    says: /has no effect with force_tls/,
    keeps: 'email: {notif_from: a, force_tls: true}',
  },
  ...(['force_tls', 'require_transport_security'] as const).map(
    (name): Case => ({
      rule: `${name} needs TLS`,
      breaks: `email: {notif_from: a, enable_tls: false, ${name}: true}`,
      kind: 'error',
      path: `email.${name}`,
      says: /contradicts enable_tls: false/,
      keeps: `email: {notif_from: a, ${name}: true}`,
    }),
  ),
  ...['template_dir: /t', 'version: 1.0'].map(
    (member): Case => ({
      rule: `the consent forms need what goes with ${member}`,
      breaks: `form_secret: f\nuser_consent: {${member}}\nlisteners: [{port: 8008, type: http, resources: [{names: [consent]}]}]`,
      kind: 'error',
      path: 'listeners[0].resources[0].names',
      says: member.startsWith('version') ? /needs user_consent.template_dir/ : /needs user_consent.version/,
      keeps:
        'form_secret: f\nuser_consent: {template_dir: /t, version: 1.0}\nlisteners: [{port: 8008, type: http, resources: [{names: [consent]}]}]',
    }),
  ),
  {
    rule: 'the consent forms need a secret',
    breaks:
      'user_consent: {template_dir: /t, version: 1.0}\nlisteners: [{port: 8008, type: http, resources: [{names: [consent]}]}]',
    kind: 'error',
    path: 'listeners[0].resources[0].names',
    says: /needs form_secret/,
    keeps:
      'form_secret: f\nuser_consent: {template_dir: /t, version: 1.0}\nlisteners: [{port: 8008, type: http, resources: [{names: [consent]}]}]',
  },
  {
    rule: 'notices about consent need server notices',
    breaks: 'user_consent: {server_notice_content: {msgtype: m.text, body: agree}}',
    kind: 'error',
    path: 'user_consent.server_notice_content',
    says: /needs server_notices/,
    keeps:
      'user_consent: {server_notice_content: {msgtype: m.text, body: agree}}\nserver_notices: {system_mxid_localpart: notices}',
  },
  {
    rule: 'server notices need a sender',
    breaks: 'server_notices: {room_name: News}',
    kind: 'error',
    path: 'server_notices.system_mxid_localpart',
    says: /must be given/,
    keeps: 'server_notices: {system_mxid_localpart: news}',
  },
  {
    rule: 'limits for avatars need a media repository',
    breaks: 'enable_media_repo: false\nmax_avatar_size: 10M',
    kind: 'warning',
    path: 'max_avatar_size',
    says: /lets nobody change their avatar/,
    keeps: 'max_avatar_size: 10M',
  },
  {
    rule: 'forbidden addresses mean nothing behind a proxy',
    breaks: 'https_proxy: "http://proxy:3128"\nip_range_blacklist: [10.0.0.0/8]',
    kind: 'warning',
    path: 'ip_range_blacklist',
    says: /has no effect on requests that go through a proxy/,
    keeps: 'ip_range_blacklist: [10.0.0.0/8]',
  },
  {
    rule: 'forbidden addresses of previews mean nothing behind a proxy',
    breaks:
      'https_proxy: "http://proxy:3128"\nurl_preview_enabled: true\nurl_preview_ip_range_blacklist: [10.0.0.0/8]',
    kind: 'warning',
    path: 'url_preview_ip_range_blacklist',
    says: /has no effect on requests that go through a proxy/,
    keeps: 'url_preview_enabled: true\nurl_preview_ip_range_blacklist: [10.0.0.0/8]',
  },
  {
    rule: 'delays of events are positive',
    breaks: 'max_event_delay_duration: 0',
    kind: 'error',
    path: 'max_event_delay_duration',
    says: /found 0; allowed: a duration above 0, or null/,
    keeps: 'max_event_delay_duration: 24h',
  },
  {
    rule: 'a policy keeps messages no shorter than it may delete them',
    breaks: 'retention: {default_policy: {min_lifetime: 1y, max_lifetime: 1d}}',
    kind: 'error',
    path: 'retention.default_policy.min_lifetime',
    says: /must not be above max_lifetime/,
    keeps: 'retention: {default_policy: {min_lifetime: 1d, max_lifetime: 1y}}',
  },
  {
    rule: 'the shortest allowed lifetime is not above the longest',
    breaks: 'retention: {allowed_lifetime_min: 1y, allowed_lifetime_max: 1d}',
    kind: 'error',
    path: 'retention.allowed_lifetime_min',
    says: /must not be above allowed_lifetime_max/,
    keeps: 'retention: {allowed_lifetime_min: 1d, allowed_lifetime_max: 1y}',
  },
  {
    rule: 'the bounds of a purge job are in order',
    breaks:
      'retention: {purge_jobs: [{interval: 1d}, {interval: 1d, shortest_max_lifetime: 3d, longest_max_lifetime: 1d}]}',
    kind: 'error',
    path: 'retention.purge_jobs[1].shortest_max_lifetime',
    says: /must not be above longest_max_lifetime/,
    keeps:
      'retention: {purge_jobs: [{interval: 1d}, {interval: 1d, shortest_max_lifetime: 1d, longest_max_lifetime: 3d}]}',
  },
  {
    rule: 'a purge job takes time between its runs',
    breaks: 'retention: {purge_jobs: [{interval: 0}]}',
    kind: 'error',
    path: 'retention.purge_jobs[0].interval',
    says: /found 0; allowed: a duration above 0/,
    keeps: 'retention: {purge_jobs: [{interval: 12h}]}',
  },
  {
    rule: 'the purge jobs cover all rooms',
    breaks: 'retention: {purge_jobs: [{interval: 1d, shortest_max_lifetime: 1d, longest_max_lifetime: 3d}]}',
    kind: 'warning',
    path: 'retention.purge_jobs',
    says: /add a job without a lower bound and one without an upper bound/,
    keeps:
      'retention: {purge_jobs: [{interval: 1d, longest_max_lifetime: 3d}, {interval: 1d, shortest_max_lifetime: 3d}]}',
  },
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
    (missing): Case => ({
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
    (name): Case => ({
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
    (name): Case => ({
      rule: `tokens need their ${name}`,
      breaks: `jwt_config: {enabled: true, ${name === 'secret' ? 'algorithm: HS256' : 'secret: s'}}`,
      kind: 'error',
      path: `jwt_config.${name}`,
      says: /must be given when JSON web tokens are enabled/,
      keeps: 'jwt_config: {enabled: true, secret: s, algorithm: HS256}',
    }),
  ),
  {
    rule: 'an upload limit has a span and a size',
    breaks: 'media_upload_limits: [{time_period: 1d}]',
    kind: 'error',
    path: 'media_upload_limits[0].max_size',
    says: /must be given; allowed: a size/,
    keeps: 'media_upload_limits: [{time_period: 1d, max_size: 500M}]',
  },
  {
    rule: 'old keys have ids of signing keys',
    breaks: `old_signing_keys: {"rsa:a": {key: ${key}, expired_ts: 1}}`,
    kind: 'error',
    path: 'old_signing_keys.rsa:a',
    says: /allowed: a key id such as ed25519:a_AbCd/,
    keeps: `old_signing_keys: {"ed25519:a": {key: ${key}, expired_ts: 1}}`,
  },
];

function endpoints(without?: string): string {
  const names = ['authorization_endpoint', 'token_endpoint', 'jwks_uri'].filter((name) => name !== without);
  return names.map((name) => `, ${name}: "https://a.org/${name}"`).join('');
}

describe('rules between options', () => {
  for (const { rule, breaks, kind, path, says, keeps } of cases) {
    it(rule, () => {
      const found = findings(breaks, kind).filter((problem) => problem.path === path);
      assert.equal(found.length, 1, JSON.stringify(load(breaks).errors));
      assert.match(found[0]?.message ?? '', says);
      assert.deepEqual(load(keeps).errors, []);
      assert.deepEqual(
        findings(keeps, kind).filter((problem) => problem.path === path && says.test(problem.message)),
        [],
      );
    });
  }

  it('thresholds of garbage collection are accepted with one remark [option: gc_thresholds, gc_min_interval]', () => {
    const [thresholds, intervals] = ['gc_thresholds: [700, 10, 10]', 'gc_min_interval: [1s, 10s, 30s]'];
    for (const document of [thresholds, intervals, `${thresholds}\n${intervals}`]) {
      const { errors, warnings, notices } = load(`${document}\nsuppress_key_server_warning: true`);
      assert.deepEqual([errors, warnings, notices.length], [[], [], 1]);
      assert.match(notices[0]!.message, /changes nothing/);
    }
    assert.deepEqual(load('suppress_key_server_warning: true').notices, []);
  });

  it('silence about the public key server can be asked for [option: suppress_key_server_warning]', () => {
    const remarks = (document: string) =>
      findings(document, 'notice').filter(({ path }) => path === 'trusted_key_servers');
    assert.equal(remarks('pid_file: null').length, 1);
    assert.deepEqual(remarks('suppress_key_server_warning: true'), []);
  });

  it('unproven keys can be accepted all the same [option: trusted_key_servers[].accept_keys_insecurely]', () => {
    const document = (accept: boolean) =>
      `federation_verify_certificates: false\ntrusted_key_servers: [{server_name: a.org, accept_keys_insecurely: ${accept}}]`;
    assert.deepEqual(
      load(document(false)).errors.map(({ path }) => path),
      ['trusted_key_servers[0]'],
    );
    assert.deepEqual(load(document(true)).errors, []);
  });

  it('a rule whose options could not be read is put aside, the others are not', () => {
    const { errors } = load('limit_usage_by_mau: true\nmax_mau_value: many\nurl_preview_enabled: true\n');
    assert.deepEqual(
      errors.map(({ path, at }) => [path, at?.line]),
      [
        ['max_mau_value', 3],
        ['url_preview_enabled', 4],
      ],
    );
  });
});
