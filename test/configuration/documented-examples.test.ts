import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { loadConfigurationSources } from '../../src/configuration/load.ts';

/** Values that the interface document names as allowed, one document for each group of options. */
const documents: Readonly<Record<string, string>> = {
  'process and server': `
modules: [{module: my_module.Class, config: {a: 1}}]
daemonize: false
gc_thresholds: [700, 10, 10]
gc_min_interval: [1s, 10s, 30s]
manhole: 9000
manhole_settings: {username: a, password: b, ssh_priv_key_path: /k, ssh_pub_key_path: /p}
proto_authentication_service: {enabled: true, endpoint: "http://localhost:8080", secret: <SHARED_SECRET>}
public_baseurl: https://example.org/
extra_well_known_client_content: {org.example.key: {nested: true}}
`,
  'listeners of every type with every resource': `
enable_metrics: true
form_secret: f
user_consent:
  template_dir: /templates
  version: 1
tls_certificate_path: /c
tls_private_key_path: /k
listeners:
  - {port: 8448, type: http, tls: true, tag: main, x_forwarded: true, request_id_header: X-Request-Id,
     bind_addresses: ["::", "0.0.0.0"],
     resources: [{names: [client, consent, metrics, federation], compress: true},
                 {names: [keys, media, openid, replication, static, health]}],
     additional_resources: {/my/path: {module: m, config: {}}}}
  - {port: 9000, type: manhole}
  - {port: 9001, type: metrics}
  - {path: /run/a.sock, type: http, mode: 666, resources: [{names: [client]}]}
`,
  'presence, profiles and directories': `
presence: {enabled: untracked, include_offline_users_on_sync: true}
default_room_version: 1
filter_timeline_limit: -1
delete_stale_devices_after: 1y
max_event_delay_duration: 24h
user_types: {default_user_type: custom, extra_user_types: [custom]}
max_avatar_size: 10M
allowed_avatar_mimetypes: [image/png, image/jpeg]
next_link_domain_whitelist: []
alias_creation_rules: [{user_id: "@*:example.org", alias: "#*", room_id: "*", action: allow}, {action: deny}]
room_list_publication_rules: [{alias: null}]
user_directory: {enabled: true, search_all_users: true, prefer_local_users: true}
`,
  'blocking and retention': `
limit_usage_by_mau: true
max_mau_value: 50
mau_appservice_trial_days: {my_service: 0}
mau_limit_reserved_threepids: [{medium: email, address: a@example.org}]
limit_remote_rooms: {enabled: true, complexity: 1.0, complexity_error: Too much, admins_can_join: true}
redaction_retention_period: null
forgotten_room_retention_period: 28d
user_ips_max_age: null
retention:
  enabled: true
  default_policy: {min_lifetime: 1d, max_lifetime: 1y}
  purge_jobs: [{longest_max_lifetime: 3d, interval: 12h}, {shortest_max_lifetime: 3d, interval: 1d}]
`,
  federation: `
federation_client_minimum_tls_version: 1.3
federation_certificate_verification_whitelist: [lon.example.com, "*.domain.com"]
federation_domain_whitelist: [lon.example.com]
federation: {client_timeout: 60s, destination_max_retry_interval: 1w, max_short_retries: 3}
old_signing_keys: {"ed25519:id": {key: Noi6WqcDj0QmPxCNQqgezwTlBKrfqehY1u2FyWP9uYw, expired_ts: 123456789123}}
trusted_key_servers: []
key_refresh_interval: 1d
`,
  'caches and databases': `
event_cache_size: 10K
caches:
  global_factor: 0.5
  per_cache_factors: {my_cache: 2.0}
  sync_response_cache_duration: 0
  cache_autotuning: {max_cache_memory_usage: 1024M, target_cache_memory_usage: 758M, min_cache_ttl: 5m}
databases:
  basement: {name: psycopg2, txn_limit: 10000, data_stores: [main], args: {user: u, password: p, dbname: d, host: h, port: 5432, cp_min: 5, cp_max: 10}}
  attic: {name: psycopg2, data_stores: [state]}
`,
  media: `
media_storage_providers:
  - {module: file_system, store_local: false, store_remote: true, store_synchronous: false, config: {directory: /media}}
max_upload_size: 50M
media_upload_limits: [{time_period: 1h, max_size: 100M}, {time_period: 1w, max_size: 500MiB}]
remote_media_download_burst_count: 500MiB
remote_media_download_per_second: 87KiB
thumbnail_sizes: [{width: 32, height: 32, method: crop}, {width: 800, height: 600, method: scale}]
media_retention: {local_media_lifetime: 90d, remote_media_lifetime: 14d}
url_preview_enabled: true
url_preview_ip_range_blacklist: [127.0.0.0/8, "::1/128"]
url_preview_url_blacklist: [{username: "*"}, {scheme: http, netloc: "^[0-9]+$"}, {netloc: "*.example.org", path: "*"}]
url_preview_accept_language: [en, en-US;q=0.9, "*;q=0.7", "*"]
oembed: {disable_default_providers: true, additional_providers: [/providers.json]}
`,
  'registration and accounts': `
enable_registration: true
enable_registration_captcha: true
recaptcha_public_key: a
recaptcha_private_key: b
registrations_require_3pid: [email, msisdn]
email: {notif_from: a}
allowed_local_3pids: [{medium: email, pattern: "^[^@]+@example\\\\.org$"}, {medium: msisdn, pattern: "\\\\+44"}]
account_threepid_delegates: {msisdn: "http://localhost:8090"}
auto_join_rooms: ["#room:example.org", "!id:example.org"]
autocreate_auto_join_room_preset: trusted_private_chat
auto_join_mxid_localpart: system
exclude_rooms_from_sync: ["!foo:example.org"]
encryption_enabled_by_default_for_room_type: invite
session_lifetime: infinity
ui_auth: {session_timeout: 15s}
password_config: {enabled: only_for_reauth, policy: {enabled: true, minimum_length: 15, require_symbol: true}}
turn_uris: ["turn:example.org", "turns:example.org:5349?transport=tcp"]
proto_rtc: {transports: [{type: livekit, livekit_service_url: "https://rtc.example.org"}]}
`,
  'single sign-on': `
saml2_config:
  idp_icon: mxc://example.org/icon
  sp_config: {metadata: {local: [/metadata.xml], remote: [{url: "https://a.org"}, "https://b.org"]}, accepted_time_diff: 3, service: {sp: {allow_unsolicited: true}}}
  user_mapping_provider: {config: {mxid_source_attribute: displayName, mxid_mapping: dotreplace}}
  attribute_requirements: [{attribute: group, value: staff}, {attribute: dept, one_of: [a, b]}]
oidc_providers:
  - {idp_id: oidc, idp_name: Work, idp_brand: work, issuer: "https://a.org", client_id: c, client_secret: <CLIENT_SECRET>, client_auth_method: client_secret_post, pkce_method: never, scopes: [openid, profile], user_profile_method: userinfo_endpoint, backchannel_logout_enabled: true}
  - {idp_id: b, issuer: "https://b.org", client_id: c, client_secret_jwt_key: {key_file: /k, jwt_header: {alg: ES256, kid: a}, jwt_payload: {iss: i}}, attribute_requirements: [{attribute: a}], scopes: null}
cas_config: {enabled: true, server_url: "https://cas.example.org", protocol_version: 3, required_attributes: {userGroup: staff, department: null}, allow_numeric_ids: true, numeric_ids_prefix: u}
sso: {client_whitelist: ["https://app.example.org/"], update_profile_information: true}
jwt_config: {enabled: true, secret: s, algorithm: HS256, subject_claim: sub, audiences: [a]}
`,
  'push, consent, notices and rooms': `
listeners: [{port: 8008, type: http, resources: [{names: [client, consent]}]}]
push: {enabled: true, include_content: false, jitter_delay: 10s}
form_secret: <SECRET>
user_consent:
  template_dir: /t
  version: 1.0
  server_notice_content: {msgtype: m.text, body: "Agree at %(consent_uri)s"}
  send_server_notice_to_guests: true
  block_events_error: "Agree at %(consent_uri)s"
  require_at_registration: true
server_notices: {system_mxid_localpart: notices, room_avatar_url: "", room_topic: "", auto_join: true}
room_prejoin_state: {disable_default_event_types: true, additional_event_types: [m.a, [m.b, key]]}
default_power_level_content_override: {private_chat: {events: {com.example.foo: 0}}, trusted_private_chat: null, public_chat: {events: {}}}
`,
  'monitoring and limits': `
sentry: {dsn: null, environment: production}
opentracing: {enabled: true, homeserver_whitelist: [".*"], force_tracing_for_users: ["@a:example.org"], jaeger_config: {sampler: {type: const, param: 1}}}
rc_message: {per_second: 0.5, burst_count: 15}
rc_admin_redaction: {per_second: 1, burst_count: 50}
rc_login: {address: {per_second: 0.15, burst_count: 5}}
rc_federation: {window_size: 750, sleep_limit: 15, sleep_delay: 400, reject_limit: 40, concurrent: 5}
email: {smtp_port: "587", force_tls: true, notif_from: "%(app)s <a@example.org>", client_base_url: "http://localhost/riot", subjects: {password_reset: "[%(server_name)s] x"}}
`,
};

describe('the documented values of options', () => {
  for (const [group, text] of Object.entries(documents)) {
    it(`accepts the documented values without errors or warnings: ${group}`, () => {
      const sources = [{ file: 'homeserver.yaml', text: `server_name: example.org${text}` }];
      const { errors, warnings } = loadConfigurationSources(sources, { environment: {}, directory: '.' });
      const otherWarnings = warnings.filter(({ message }) => !message.includes('not in force yet'));
      assert.deepEqual([errors, otherWarnings], [[], []]);
    });
  }
});
