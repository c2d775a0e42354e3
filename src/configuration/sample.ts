/** What a first configuration says. Paths are used as they are given. */
export interface SampleChoices {
  readonly serverName: string;
  /** The directory of the database, the media, the signing key and the secrets. */
  readonly dataDirectory: string;
  readonly port?: number;
  readonly bindAddresses?: readonly string[];
  /** Where clients reach the server; needed behind a reverse proxy. */
  readonly publicBaseurl?: string;
  /** A secret for signing tokens, which is written into the file. */
  readonly macaroonSecretKey: string;
  /** A secret for protecting forms, which is written into the file. */
  readonly formSecret: string;
}

/**
 * A first configuration with comments, for a server that others can grow from. It passes
 * `config check --strict`. The file holds secrets: write it with private permissions.
 */
export function sampleConfiguration(choices: SampleChoices): string {
  const {
    serverName,
    dataDirectory,
    port = 8008,
    bindAddresses = ['127.0.0.1', '::1'],
    publicBaseurl,
  } = choices;
  const text = (value: string) => JSON.stringify(value);
  const within = (name: string) => text(`${dataDirectory.replace(/\/+$/, '')}/${name}`);
  const baseurl =
    publicBaseurl === undefined
      ? '# public_baseurl: "https://matrix.example.org/"'
      : `public_baseurl: ${text(publicBaseurl)}`;
  return `# Configuration of a Hearth homeserver.
#
# All other options, with their defaults:  hearth config docs
# What one option does:                    hearth config explain enable_registration
# Whether this file is right:              hearth config check <this file>

# The name of this server: the part behind the colon in @alice:${serverName}.
# It cannot be changed later.
server_name: ${text(serverName)}

# The URL at which clients reach the server, when that is not the server name itself.
${baseurl}

# Where the server listens. For the outside world, put a reverse proxy with TLS in front, or set
# tls_certificate_path and tls_private_key_path and say tls: true here.
listeners:
  - port: ${port}
    bind_addresses: ${JSON.stringify(bindAddresses)}
    type: http
    # Say true behind a reverse proxy, so that the addresses of clients are right.
    x_forwarded: false
    resources:
      - names: [client, federation]
        compress: false

# Where the data is. For PostgreSQL:
#
# database:
#   name: psycopg2
#   args: {user: hearth, password: "…", dbname: hearth, host: localhost}
database:
  name: sqlite3
  args:
    database: ${within('homeserver.db')}

media_store_path: ${within('media_store')}

# The key that signs what this server says. Keep a copy in a safe place.
signing_key_path: ${within(`${serverName}.signing.key`)}

# Whoever can read this file can make accounts, with: hearth register-user
registration_shared_secret_path: ${within('registration_shared_secret')}

# Whether people can make accounts themselves. Ask for a token, a mail address or a CAPTCHA then.
enable_registration: false
# registration_requires_token: true

# Secrets behind tokens and forms.
macaroon_secret_key: ${text(choices.macaroonSecretKey)}
form_secret: ${text(choices.formSecret)}

# Servers that are asked for the keys of other servers.
trusted_key_servers:
  - server_name: "matrix.org"
suppress_key_server_warning: true

# Whether to report usage figures to the makers of the protocol.
report_stats: false
`;
}
