import {
  boolean,
  duration,
  integer,
  list,
  nullable,
  object,
  option,
  string,
  versionOneOf,
} from '../../kernel/config/index.ts';

/** Options for requests to other servers. */
export const requestOptions = {
  federation_verify_certificates: option(boolean(), {
    description: 'Requires valid TLS certificates of other servers.',
    default: true,
  }),
  federation_client_minimum_tls_version: option(versionOneOf('1', '1.1', '1.2', '1.3'), {
    description:
      'The oldest TLS version for requests to other servers. With `1.3`, most public servers cannot be reached.',
    default: '1',
  }),
  federation_certificate_verification_whitelist: option(list(string({ minLength: 1 })), {
    description:
      'Servers whose certificates are not verified; `*.` at the beginning means any subdomain. It has an effect only with `federation_verify_certificates`.',
    default: [],
  }),
  federation_custom_ca_list: option(list(string({ minLength: 1 })), {
    description:
      'PEM files of certificate authorities. For certificates of other servers, they replace the authorities that the host trusts.',
    default: [],
  }),
  federation_domain_whitelist: option(nullable(list(string({ minLength: 1 }))), {
    description:
      'The only servers to federate with. When it is not given (or null), this server federates with all servers; with an empty list, it federates with none. It does not keep users out of rooms that contain other servers.',
    default: [],
    unset: null,
  }),
  federation: option(
    object({
      client_timeout: option(duration(), {
        description: 'Timeout of a request.',
        default: '60s',
      }),
      max_short_retry_delay: option(duration(), {
        description: 'The longest delay between attempts while a user waits for the response.',
        default: '2s',
      }),
      max_long_retry_delay: option(duration(), {
        description: 'The longest delay between attempts in the background.',
        default: '60s',
      }),
      max_short_retries: option(integer({ minimum: 0 }), {
        description: 'How many retries are made while a user waits for the response.',
        default: 3,
        unit: 'attempts',
      }),
      max_long_retries: option(integer({ minimum: 0 }), {
        description: 'How many retries are made in the background.',
        default: 10,
        unit: 'attempts',
      }),
      destination_min_retry_interval: option(duration(), {
        description: 'The first backoff of a server that could not be reached. It is stored across restarts.',
        default: '10m',
      }),
      destination_retry_multiplier: option(integer({ minimum: 1 }), {
        description: 'Each further failure multiplies the backoff by this factor.',
        default: 2,
        unit: 'factor',
      }),
      destination_max_retry_interval: option(duration(), {
        description: 'The longest backoff of a server.',
        default: '1w',
      }),
    }),
    { description: 'Timeouts and retries of requests to other servers.' },
  ),
};
