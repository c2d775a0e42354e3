import {
  boolean,
  duration,
  integer,
  list,
  nullable,
  object,
  option,
  section,
  string,
} from '../config/index.ts';

/** The login of the debugging console where `manhole_settings` names none. It is publicly known. */
export const builtInLogin = { username: 'hearth', password: 'manhole' };

/** Options of the process itself. */
export const processSection = section({
  title: 'Process',
  description: 'How the process runs on its host.',
  options: {
    pid_file: option(nullable(string({ minLength: 1 })), {
      description:
        'The file that contains the process id while the server runs, if it is detached from the terminal (`daemonize`).',
      default: null,
    }),
    daemonize: option(boolean(), {
      description:
        'Detaches the server from the terminal; the flag `--daemonize` (`-D`) does the same. Leave it off under a service manager.',
      default: false,
    }),
    print_pidfile: option(boolean(), {
      description:
        'Prints the path of the pid file before the server detaches from the terminal; the flag `--print-pidfile` does the same.',
      default: false,
    }),
    soft_file_limit: option(integer({ minimum: 0 }), {
      description:
        'The soft limit of open file descriptors to set at start, on hosts with the program `prlimit`. 0 raises it to the hard limit.',
      default: 0,
      unit: 'file descriptors',
    }),
    gc_thresholds: option(nullable(list(integer({ minimum: 0 }), { minItems: 3, maxItems: 3 })), {
      description:
        'Thresholds that start a garbage collection, one for each of three generations. They belong to another runtime: this server accepts and ignores them.',
      default: null,
    }),
    gc_min_interval: option(list(duration(), { minItems: 3, maxItems: 3 }), {
      description:
        'The minimum time between two collections of each of the three generations. Ignored like `gc_thresholds`.',
      default: ['1s', '10s', '30s'],
    }),
    manhole: option(nullable(integer({ minimum: 0, maximum: 65535 })), {
      description: `A port on the loopback address for the debugging console, for SSH and telnet clients; the flag \`--manhole\` does the same. Null opens none. Without \`manhole_settings\` the login is \`${builtInLogin.username}\` with the password \`${builtInLogin.password}\`.`,
      default: null,
      unit: 'port number',
    }),
    manhole_settings: option(
      object({
        username: option(nullable(string()), {
          description: `The user name of the debugging console. Null means the built-in name, \`${builtInLogin.username}\`.`,
          default: null,
        }),
        password: option(nullable(string()), {
          description: `The password of the debugging console. Null means the built-in one, \`${builtInLogin.password}\`, which is publicly known.`,
          default: null,
          secret: true,
        }),
        ssh_priv_key_path: option(nullable(string({ minLength: 1 })), {
          description:
            'The file of the private SSH host key of the console, without a passphrase. Without it a publicly known key is used, so others on a public network can read the traffic.',
          default: null,
        }),
        ssh_pub_key_path: option(nullable(string({ minLength: 1 })), {
          description:
            'The file of the public half of the host key. The server does not start if it does not belong to the private key. Has no effect without `ssh_priv_key_path`.',
          default: null,
        }),
      }),
      { description: 'Access to the debugging console.' },
    ),
    worker_replication_secret: option(nullable(string({ minLength: 1 })), {
      description:
        'The secret with which workers authenticate to the replication API of the main process. When it is null, that traffic is not authenticated.',
      default: null,
      secret: true,
    }),
  },
  rules: [
    (_values, view) => {
      const given = (['gc_thresholds', 'gc_min_interval'] as const).find((name) => view.isGiven(name));
      if (given === undefined) return;
      view.notice(given, 'has no effect: the runtime of this server decides itself when it collects garbage');
    },
  ],
});
