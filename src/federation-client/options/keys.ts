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

const keyIds = { pattern: '^ed25519:[A-Za-z0-9_]+$', allowed: 'a key id such as ed25519:a_AbCd' };

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
      'Its public keys by key id; one of them must have signed its answers. Null trusts its TLS certificate.',
    default: null,
  }),
  accept_keys_insecurely: option(boolean(), {
    description:
      'Accepts its answers although neither `verify_keys` nor a certificate proves them. Anyone between the two servers could then make up keys.',
    default: false,
  }),
});

/** Keys of this server and of others. */
export const keyOptions = {
  signing_key_path: option(nullable(string({ minLength: 1 })), {
    description:
      'The file with the key that signs events and requests. A missing file is made, with a new key. Null stands for `<server_name>.signing.key` beside the first configuration file.',
    default: null,
    since: '1.67',
    created: 'signing-key',
  }),
  old_signing_keys: option(mapOf(oldKey, keyIds), {
    description: 'Keys with which this server signed in the past, by key id.',
    default: {},
  }),
  key_refresh_interval: option(duration(), {
    description: "How long other servers may rely on this server's published keys.",
    default: '1d',
  }),
  trusted_key_servers: option(list(keyServer), {
    description:
      'Servers that are asked, all at once, for the keys of others. An empty list asks the owners of keys only; events of servers that are gone are then refused.',
    default: [{ server_name: 'matrix.org' }],
    deprecatedNames: ['perspectives'],
    changed: ['Replaces `perspectives`.'],
  }),
  suppress_key_server_warning: option(boolean(), {
    description: 'Leaves out the remark at start that the public key server is used.',
    default: false,
  }),
  key_server_signing_keys_path: option(nullable(string({ minLength: 1 })), {
    description:
      "A file with the keys that sign answers about keys of other servers, one in each line. Null stands for this server's key.",
    default: null,
  }),
};
