/** Settings of an instance of the reference server. */
export interface ReferenceSettings {
  /** Server name, the domain of its users' ids. */
  readonly name: string;
  /** Port on the loopback address for clients, with plain HTTP. */
  readonly port: number;
  /** Port on the loopback address for other servers, with TLS. */
  readonly tlsPort: number;
  /** The folder of the server, as a path inside the chroot. */
  readonly folder: string;
}

const unlimited = '{per_second: 1000000000, burst_count: 1000000000}';
const listener = 'type: http, bind_addresses: ["127.0.0.1"], resources: [{names: [client, federation]}]';

/**
 * Returns the `homeserver.yaml` of the reference server: no rate limits, and short retries for unreachable
 * servers.
 */
export function referenceConfiguration({ name, port, tlsPort, folder }: ReferenceSettings): string {
  return `server_name: ${JSON.stringify(name)}
public_baseurl: "http://127.0.0.1:${port}/"
pid_file: ${folder}/homeserver.pid
signing_key_path: ${folder}/signing.key
media_store_path: ${folder}/media
log_config: ${folder}/log.yaml
listeners:
  - {port: ${port}, tls: false, ${listener}}
  - {port: ${tlsPort}, tls: true, ${listener}}
tls_certificate_path: ${folder}/tls.pem
tls_private_key_path: ${folder}/tls.key
federation_custom_ca_list: [${folder}/ca.pem]
database: {name: sqlite3, args: {database: ${folder}/homeserver.db}}
report_stats: false
suppress_key_server_warning: true
trusted_key_servers: []
ip_range_blacklist: []
federation_ip_range_blacklist: []
enable_registration: true
enable_registration_without_verification: true
registration_shared_secret: for registration
server_notices: {system_mxid_localpart: notices, room_name: Notices}
macaroon_secret_key: for macaroons
form_secret: for forms
bcrypt_rounds: 4
presence: {enabled: true}
allow_public_rooms_without_auth: true
allow_public_rooms_over_federation: true
allow_device_name_lookup_over_federation: true
room_list_publication_rules: [{action: allow}]
federation:
  max_long_retry_delay: 1s
  destination_min_retry_interval: 1s
  destination_retry_multiplier: 1
  destination_max_retry_interval: 1s
rc_message: ${unlimited}
rc_registration: ${unlimited}
rc_login: {address: ${unlimited}, account: ${unlimited}, failed_attempts: ${unlimited}}
rc_admin_redaction: ${unlimited}
rc_joins: {local: ${unlimited}, remote: ${unlimited}}
rc_joins_per_room: ${unlimited}
rc_invites: {per_room: ${unlimited}, per_user: ${unlimited}, per_issuer: ${unlimited}}
rc_room_creation: ${unlimited}
rc_media_create: ${unlimited}
rc_presence: {per_user: ${unlimited}}
rc_federation: {window_size: 1000, sleep_limit: 1000000, sleep_delay: 0, reject_limit: 1000000, concurrent: 100}
`;
}

/** The `log.yaml` of the reference server. */
export const referenceLogging = `version: 1
formatters: {plain: {format: '%(asctime)s %(levelname)s %(name)s %(request)s %(message)s'}}
handlers: {console: {class: logging.StreamHandler, formatter: plain}}
root: {level: INFO, handlers: [console]}
disable_existing_loggers: false
`;
