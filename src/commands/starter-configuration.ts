import { join } from 'node:path';
import { type Randomness, randomString } from '../kernel/randomness.ts';

/** The configuration of a new server on one machine, with what every operator should look at. */
export function starterConfiguration(
  { serverName, directory }: { readonly serverName: string; readonly directory: string },
  randomness: Randomness,
): string {
  const path = (name: string) => JSON.stringify(join(directory, name));
  const secret = () => JSON.stringify(randomString(randomness, 48));
  return `# The configuration of this homeserver. Keep it secret: it holds passwords.

# The name of this server: the part behind the colon in user ids and room addresses. It can never be changed.
server_name: ${JSON.stringify(serverName)}

# The address at which clients reach this server from outside, for instance that of a reverse proxy.
# public_baseurl: https://example.org/

# Where the server listens. Behind a reverse proxy on the same machine, this is all it takes; set x_forwarded then.
listeners:
  - port: 8008
    type: http
    bind_addresses: ["127.0.0.1"]
    x_forwarded: false
    resources:
      - names: [client, federation]
        compress: false

# Everything that is stored, in one file. For a large server, PostgreSQL:
#   name: psycopg2
#   args: { host: localhost, user: hearth, password: secret, dbname: hearth }
database:
  name: sqlite3
  args:
    database: ${path('homeserver.db')}

# Files that users upload.
media_store_path: ${path('media_store')}

# The key with which this server signs what it says to others.
signing_key_path: ${path(`${serverName.replaceAll(':', '_')}.signing.key`)}

# Whether people may make accounts themselves. The administrator can always make some: hearth register-user.
enable_registration: false

# Who knows this may make accounts, administrators included.
registration_shared_secret: ${secret()}

# Sign short-lived tokens and forms.
macaroon_secret_key: ${secret()}
form_secret: ${secret()}

# The servers that are asked about the keys of others.
trusted_key_servers:
  - server_name: matrix.org
suppress_key_server_warning: true
`;
}
