import type { Static } from 'typebox';
import {
  boolean,
  fileMode,
  freeObject,
  integer,
  list,
  mapOf,
  nullable,
  object,
  oneOf,
  option,
  string,
} from '../../config/index.ts';

/** The names of the APIs that a listener may serve. */
export const resourceNames = [
  'client',
  'consent',
  'federation',
  'keys',
  'media',
  'metrics',
  'openid',
  'replication',
  'static',
  'health',
] as const;

const resource = object({
  names: option(list(oneOf(...resourceNames)), {
    description: `The APIs to serve here.

- \`client\`: the client API at \`/_proto/client\`, with \`media\` and \`static\`; on the main process also the admin API at \`/_server/admin\`
- \`consent\`: the consent forms at \`/_proto/consent\`
- \`federation\`: the server-to-server API at \`/_proto/federation\`, with \`media\`, \`keys\` and \`openid\`
- \`keys\`: this server's public keys at \`/_proto/key\`
- \`media\`: the media API at \`/_proto/media\`
- \`metrics\`: measurements for Prometheus; not on a Unix socket
- \`openid\`: checks of OpenID tokens by other services
- \`replication\`: the API for workers at \`/_server/replication\`
- \`static\`: pages at \`/_proto/static\`, mostly for logging in without a capable client
- \`health\`: the health check, which every listener serves; name it for a port that serves nothing else`,
    default: [],
  }),
  compress: option(boolean(), {
    description:
      'Compresses bodies with gzip. It works for `client`, `consent`, `metrics` and `federation` only.',
    default: false,
  }),
});

const listener = object({
  port: option(nullable(integer({ minimum: 0, maximum: 65535 })), {
    description: 'The TCP port to listen on. Give either this or `path`.',
    default: null,
    unit: 'port number',
  }),
  tag: option(nullable(string()), {
    description: 'A name for this listener in the log, in place of the port. Only with `type: http`.',
    default: null,
  }),
  bind_addresses: option(nullable(list(string({ minLength: 1 }))), {
    description: 'The local addresses to listen on. Null stands for all of them.',
    default: null,
    deprecatedNames: ['listeners[].bind_address'],
  }),
  type: option(oneOf('http', 'manhole', 'metrics'), {
    description: 'What the listener serves: the HTTP APIs, the debugging console, or the metrics alone.',
    required: true,
  }),
  tls: option(boolean(), {
    description: 'Encrypts connections with `tls_certificate_path` and `tls_private_key_path`.',
    default: false,
  }),
  x_forwarded: option(nullable(boolean()), {
    description:
      'Takes the address of the client from the header `X-Forwarded-For`, which a reverse proxy sets. Only with `type: http`. Null means true on a Unix socket and false on a port.',
    default: null,
  }),
  request_id_header: option(nullable(string({ minLength: 1 })), {
    description:
      'A request header whose value becomes the request id in the log. With null, or in requests without the header, the id is the method and a number.',
    default: null,
    since: '1.68.0',
  }),
  resources: option(list(resource), {
    description: 'What to serve on this listener. Only with `type: http`.',
    default: [],
  }),
  additional_resources: option(
    mapOf(
      object({
        module: option(string({ minLength: 1 }), {
          description: 'The module that serves the path: a file or a package, as in `modules`.',
          required: true,
        }),
        config: option(freeObject(), {
          description: 'The configuration that is passed to the module.',
          default: {},
          secret: true,
        }),
      }),
      { pattern: '^(/[^/:*?#]+)+$', allowed: 'a path like /a/b' },
    ),
    {
      description:
        'Modules that serve further paths and all paths below them, by path. Only with `type: http`.',
      default: {},
    },
  ),
  path: option(nullable(string({ minLength: 1 })), {
    description:
      'The path of a Unix socket to listen on in place of a port. Its directory must exist and be writable. `bind_addresses` and `tls` have no meaning here.',
    default: null,
    since: '1.89.0',
  }),
  mode: option(nullable(fileMode()), {
    description: 'The permissions of the Unix socket, in octal. Null stands for 666.',
    default: null,
  }),
});

/** One entry of `listeners`. */
export type ListenerConfig = Static<typeof listener>;

export const listenersOption = option(list(listener), {
  description: 'Where the server listens.',
  default: [],
});
