import {
  boolean,
  duration,
  integer,
  list,
  mapOf,
  nullable,
  object,
  option,
  serverName,
  string,
} from '../../kernel/config/index.ts';

const keyIds = { pattern: '^ed25519:[A-Za-z0-9_]+$', allowed: 'a key id like ed25519:a_AbCd' };

const publicKey = () =>
  string({ pattern: '^[A-Za-z0-9+/]{43}=?$', allowed: 'a public key: 32 bytes in base64' });

const oldKey = object({
  key: option(publicKey(), { description: 'The public key in base64.', required: true }),
  expired_ts: option(integer({ minimum: 0 }), {
    description: 'When the key was last used.',
    required: true,
    unit: 'milliseconds since 1970',
  }),
});

const keyServer = object({
  server_name: option(serverName(), { description: 'The name of the key server.', required: true }),
  verify_keys: option(nullable(mapOf(publicKey(), keyIds)), {
    description:
      'Its public keys by key id; one of them must have signed its responses. Null trusts its TLS certificate.',
    default: null,
  }),
  accept_keys_insecurely: option(boolean(), {
    description:
      'Accepts its responses although neither `verify_keys` nor a certificate proves them. Anyone between the two servers could then forge keys.',
    default: false,
  }),
});

/** Options for the keys of this server and of other servers. */
export const keyOptions = {
  signing_key_path: option(nullable(string({ minLength: 1 })), {
    description:
      'The file with the key that signs events and requests. If it is missing, it is created with a new key. Null means `<server_name>.signing.key` beside the first configuration file.',
    default: null,
    since: '1.67',
    created: 'signing-key',
  }),
  old_signing_keys: option(mapOf(oldKey, keyIds), {
    description: 'Keys with which this server signed in the past, by key id.',
    default: {},
  }),
  key_refresh_interval: option(duration(), {
    description: "How long other servers may use this server's published keys before they fetch them again.",
    default: '1d',
  }),
  trusted_key_servers: option(list(keyServer), {
    description:
      'Notary servers from which the keys of other servers are requested, from all of them at once. With an empty list, keys are requested only from the servers that own them; events of servers that are gone are then rejected.',
    default: [{ server_name: 'matrix.org' }],
    deprecatedNames: ['perspectives'],
    changed: ['Replaces `perspectives`.'],
  }),
  suppress_key_server_warning: option(boolean(), {
    description: 'Suppresses the notice at start that keys are requested from matrix.org.',
    default: false,
  }),
  key_server_signing_keys_path: option(nullable(string({ minLength: 1 })), {
    description:
      "A file with the keys that sign responses about keys of other servers, one per line. Null means this server's key.",
    default: null,
  }),
};
